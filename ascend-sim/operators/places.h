// Where elements are, and how one is moved with every bit kept. Picks none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operators/elements.h"
#include "operators/tensor.h"

namespace ascend_sim {

using Bits = Elements<std::int64_t>;  // of a tensor seen as_bits

[[nodiscard]] Sizes coordinates_of(std::int64_t position, const Sizes& sizes);
[[nodiscard]] std::int64_t position_of(const Sizes& coordinates,
                                       const Sizes& sizes);
// Positions count elements in row-major order.
void move_element(const Bits& from, std::int64_t source, const Bits& to,
                  std::int64_t target);
void move_all(const Tensor& from, const Tensor& to);

// A task without a body, its operands checked and declared.
[[nodiscard]] Task moving_task(const std::string& name,
                               const std::vector<Tensor>& read,
                               const Tensor& written);

}  // namespace ascend_sim
