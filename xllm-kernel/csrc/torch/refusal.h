// How a bridge refuses arguments: the sentence in a domain error's form, and
// numbers as Python prints them. Includes nothing of torch; knows no clause.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace xllm_kernel::bridge {

// Names one implementation in every message.
struct Implementation {
  std::string_view operation;
  std::string_view name;
};

// Throws the error that Python receives as RuntimeError with exactly this text:
// torch's own checks would put this file's path before it.
[[noreturn]] void refuse(const Implementation& implementation,
                         const std::string& sentence, std::string_view clause);

// As Python's format(value, "g").
[[nodiscard]] std::string number_text(double value);
// As Python prints a list of integers.
[[nodiscard]] std::string list_text(std::span<const std::int64_t> values);

}  // namespace xllm_kernel::bridge
