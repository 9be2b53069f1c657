// Tells whether the rows of a layout share bytes. Looks at sizes only.
#include "simd/core/rows.h"

namespace xllm_kernel::simd {

bool RowLayout::rows_apart(std::int64_t row_bytes) const noexcept {
  // By growing stride, each dimension must step over all that the smaller ones
  // cover.
  std::array<std::size_t, kMaxLeading> order;
  for (std::size_t n = 0; n < rank_; ++n) {
    std::size_t place = n;
    const auto magnitude = [this](std::size_t axis) {
      return strides_[axis] < 0 ? -strides_[axis] : strides_[axis];
    };
    for (; place > 0 && magnitude(order[place - 1]) > magnitude(n); --place) {
      order[place] = order[place - 1];
    }
    order[place] = n;
  }
  std::int64_t covered = row_bytes;
  for (std::size_t n = 0; n < rank_; ++n) {
    const std::int64_t stride = strides_[order[n]];
    const std::int64_t step = stride < 0 ? -stride : stride;
    if (step < covered) return false;
    covered += step * (extents_[order[n]] - 1);
  }
  return true;
}

}  // namespace xllm_kernel::simd
