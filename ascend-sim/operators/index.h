// Operators that move elements to other places. Computes nothing: every bit is
// kept.
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

// These leave how many there were in out's descriptor.

[[nodiscard]] Task masked_select(const std::string& name, const Tensor& self,
                                 const Tensor& mask, const Tensor& out);
// A row of indices for each element that is not 0; one for each dimension in
// the other form.
enum class NonzeroForm : std::uint8_t { kRows, kColumns };
[[nodiscard]] Task nonzero(const std::string& name, const Tensor& self,
                           NonzeroForm form, const Tensor& out);

}  // namespace ascend_sim
