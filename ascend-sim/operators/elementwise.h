// Operators that compute each element from the elements at the same place.
// Allocates nothing; casts are the identity with another result type.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "operators/tensor.h"

namespace ascend_sim {

using Operand = std::variant<Tensor, Scalar>;

// The function is one of elementwise.cpp's table, e.g. "Add"; operands
// broadcast to the result. Computes in float64 if a tensor is float64, in
// float32 if anything else is floating, and in int64 otherwise; rounds once.
[[nodiscard]] Task elementwise(const std::string& name,
                               std::string_view function,
                               std::vector<Operand> operands,
                               const Tensor& out);

// ~x, which for a bool is "not".
[[nodiscard]] Task bitwise_not(const std::string& name, const Tensor& self,
                               const Tensor& out);

// Every bit is kept where both have one dtype, else each element is rounded
// once.
[[nodiscard]] Task copy(const std::string& name, const Tensor& from,
                        const Tensor& to);

}  // namespace ascend_sim
