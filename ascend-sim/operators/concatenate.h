// Operators that put tensors side by side. Every bit is kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operators/tensor.h"

namespace ascend_sim {

// Along an existing dimension.
[[nodiscard]] Task concatenate(const std::string& name,
                               const std::vector<Tensor>& tensors,
                               std::int64_t dimension, const Tensor& out);
// Along a new dimension.
[[nodiscard]] Task stack(const std::string& name,
                         const std::vector<Tensor>& tensors,
                         std::int64_t dimension, const Tensor& out);

}  // namespace ascend_sim
