// Operators that take or put elements by index. Every bit is kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operators/tensor.h"

namespace ascend_sim {

// An index beyond the dimension fails the task on the device. Negative ones
// count from the end.

// out[.., i, ..] = self[.., index[i], ..], where index may have any sizes.
[[nodiscard]] Task index_select(const std::string& name, const Tensor& self,
                                std::int64_t dimension, const Tensor& index,
                                const Tensor& out);
// As index_select, with an index of its own for each element of out.
[[nodiscard]] Task gather(const std::string& name, const Tensor& self,
                          std::int64_t dimension, const Tensor& index,
                          const Tensor& out);
// self[i, j, ...] for index tensors that broadcast; an empty one stands for a
// dimension that is taken whole.
[[nodiscard]] Task index(const std::string& name, const Tensor& self,
                         const std::vector<Tensor>& indices, const Tensor& out);
// self[i, j, ...] = values
[[nodiscard]] Task index_put(const std::string& name, const Tensor& self,
                             const std::vector<Tensor>& indices,
                             const Tensor& values);

}  // namespace ascend_sim
