// What simulates a device kernel, and the table of those that are simulated.
// Knows neither handles nor streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/task.h"

namespace ascend_sim {

// Gives the bytes behind a device address.
using Resolve = std::function<std::byte*(Address)>;

// Memory that a field of an argument block makes the kernel touch; some bytes
// at least.
struct Operand {
  std::string_view field;
  std::vector<Access> accesses;
};

// A launch whose argument block makes sense.
struct Plan {
  std::vector<Operand> operands;
  std::function<void(const Resolve&)> run;
  std::vector<std::pair<std::string, std::string>> notes;
};

// Why an argument block makes no sense.
struct BlockError {
  std::string field;
  std::string text;  // what must hold and what was seen
};

// Reads an argument block of the kernel's size, for a launch on so many cores.
using MakePlan = std::variant<Plan, BlockError> (*)(
    std::span<const std::byte> block, std::uint32_t cores);

struct Kernel {
  std::string_view name;
  std::uint32_t argument_bytes;
  MakePlan make_plan;
};

[[nodiscard]] std::span<const Kernel> simulated_kernels();

// What `rows` rows of `bytes` bytes touch that begin `step` bytes apart.
[[nodiscard]] std::vector<Access> access_rows(Address first, std::uint64_t rows,
                                              std::uint64_t step,
                                              std::uint64_t bytes,
                                              AccessKind kind);

}  // namespace ascend_sim
