// The words around a refusal. Decides nothing: the bridges' clauses do.
#include "torch/refusal.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace xllm_kernel::bridge {

void refuse(const Implementation& implementation, const std::string& sentence,
            std::string_view clause) {
  std::string text(implementation.operation);
  text.append(" [").append(implementation.name).append("]: ");
  text.append(sentence).append(" (clause ").append(clause).append(")");
  throw std::runtime_error(text);
}

std::string number_text(double value) {
  // printf may print the sign of a NaN; Python does not.
  if (std::isnan(value)) return "nan";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

std::string list_text(std::span<const std::int64_t> values) {
  std::string text = "[";
  const char* separator = "";
  for (const std::int64_t value : values) {
    text.append(separator).append(std::to_string(value));
    separator = ", ";
  }
  return text.append("]");
}

}  // namespace xllm_kernel::bridge
