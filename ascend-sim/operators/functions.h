// The functions that elementwise operators apply to elements. Knows no tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ascend_sim {

inline constexpr std::size_t kMostOperands = 3;

// Takes as many of the arguments as the function has operands.
template <class C>
using Compute = C (*)(C, C, C);

struct ElementFunction {
  std::string_view name;
  std::size_t operands = 0;
  Compute<float> in_float = nullptr;
  Compute<double> in_double = nullptr;
  Compute<std::int64_t> in_int64 = nullptr;
};

// Null for a name that the table does not have.
[[nodiscard]] const ElementFunction* find_function(std::string_view name);

}  // namespace ascend_sim
