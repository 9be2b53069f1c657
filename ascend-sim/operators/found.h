// Operators whose result's size only the data tell: they leave it in the
// result's descriptor, and the elements lie one behind the other.
#pragma once

#include <cstdint>
#include <string>

#include "operators/tensor.h"

namespace ascend_sim {

[[nodiscard]] Task masked_select(const std::string& name, const Tensor& self,
                                 const Tensor& mask, const Tensor& out);

// The indices of the elements that are not 0: a row for each element, or a row
// for each dimension.
enum class NonzeroForm : std::uint8_t { kByElement, kByDimension };
[[nodiscard]] Task nonzero(const std::string& name, const Tensor& self,
                           NonzeroForm form, const Tensor& out);

}  // namespace ascend_sim
