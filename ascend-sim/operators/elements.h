// Reads and writes a tensor's elements in row-major order, converted to the
// type that an operator computes in. Computes nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operators/tensor.h"

namespace ascend_sim {

// C is float, double or std::int64_t. For bodies of tasks: touches the shadow
// of device memory.
template <class C>
class Elements final {
 public:
  explicit Elements(Tensor tensor) : tensor_(std::move(tensor)) {}

  // Elements first, first + 1, ...
  void read(std::int64_t first, std::span<C> to) const;
  // Rounds once, but for float64 to a 16-bit type, which goes by way of
  // float32. Integers wrap; from floating point they saturate, and a NaN
  // gives 0; what is not 0 gives true.
  void write(std::int64_t first, std::span<const C> from) const;

  [[nodiscard]] std::vector<C> read_all() const;

 private:
  template <class Visit>
  void for_each_run(std::int64_t first, std::int64_t count,
                    Visit&& visit) const;

  Tensor tensor_;
};

extern template class Elements<float>;
extern template class Elements<double>;
extern template class Elements<std::int64_t>;

}  // namespace ascend_sim
