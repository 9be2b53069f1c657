// What the public functions check of their operands before a kernel runs.
// Names roles of arguments, no operator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "xllm_kernel/core.h"

namespace xllm_kernel::simd {

template <class Byte>
[[nodiscard]] bool last_stride_is_one(
    const BasicTensorView<Byte>& view) noexcept {
  const std::size_t last = view.rank() - 1;
  return view.stride(last) == 1 || view.extent(last) == 1;
}

template <class First, class Second>
[[nodiscard]] bool same_extents(const BasicTensorView<First>& a,
                                const BasicTensorView<Second>& b) noexcept {
  if (a.rank() != b.rank()) return false;
  for (std::size_t axis = 0; axis < a.rank(); ++axis) {
    if (a.extent(axis) != b.extent(axis)) return false;
  }
  return true;
}

// Whether every element of the one is the same element of the other.
template <class First, class Second>
[[nodiscard]] bool same_tensor(const BasicTensorView<First>& a,
                               const BasicTensorView<Second>& b) noexcept {
  if (a.base() != b.base() || a.dtype() != b.dtype() || !same_extents(a, b)) {
    return false;
  }
  for (std::size_t axis = 0; axis < a.rank(); ++axis) {
    if (a.extent(axis) != 1 && a.stride(axis) != b.stride(axis)) return false;
  }
  return true;
}

// Whether the ranges of bytes between first and last touch. Says yes to rows
// that interleave without touching.
template <class First, class Second>
[[nodiscard]] bool ranges_meet(const BasicTensorView<First>& a,
                               const BasicTensorView<Second>& b) noexcept {
  return a.begin_byte() < b.end_byte() && b.begin_byte() < a.end_byte();
}

// Rows with a weight for each column, and a non-negative eps.
[[nodiscard]] Status check_rows_weight_eps(const TensorView& input,
                                           const TensorView& weight,
                                           double eps) noexcept;

// What to say where a tensor is unlike the one it must resemble.
struct Unlike {
  Status shape;
  Status dtype;
  Status stride;
};

// Extents and dtype of `model`, and a last stride of 1.
template <class Byte>
[[nodiscard]] Status check_like(const BasicTensorView<Byte>& view,
                                const TensorView& model,
                                const Unlike& unlike) noexcept {
  if (!same_extents(view, model)) return unlike.shape;
  if (view.dtype() != model.dtype()) return unlike.dtype;
  return last_stride_is_one(view) ? Status::kOk : unlike.stride;
}

}  // namespace xllm_kernel::simd
