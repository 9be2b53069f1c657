// Walks the rows of a checked view: the only place that turns a row number into
// an address. Does not know what a row means.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "xllm_kernel/core.h"

namespace xllm_kernel::simd {

// More dimensions of extent 2 or more than this have over 2^62 elements, which
// no view has.
inline constexpr std::size_t kMaxLeading = 62;

// The leading dimensions of a view, those of extent 1 dropped and neighbours
// merged where one stride serves both. Strides are in bytes. Valid for a view
// of rank >= 1 that has elements.
class RowLayout final {
 public:
  template <class Byte>
  explicit RowLayout(const BasicTensorView<Byte>& view) noexcept {
    const std::int64_t size = dtype_size(view.dtype());
    for (std::size_t axis = 0; axis + 1 < view.rank(); ++axis) {
      const std::int64_t extent = view.extent(axis);
      if (extent == 1) continue;
      rows_ *= extent;
      push(extent, view.stride(axis) * size);
    }
  }

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::int64_t extent(std::size_t axis) const noexcept {
    return extents_[axis];
  }
  [[nodiscard]] std::int64_t stride(std::size_t axis) const noexcept {
    return strides_[axis];
  }

  // Whether no two rows of `row_bytes` share a byte. May say no to rows that
  // interleave without touching; never yes to rows that do touch.
  [[nodiscard]] bool rows_apart(std::int64_t row_bytes) const noexcept;

 private:
  void push(std::int64_t extent, std::int64_t stride) noexcept {
    if (rank_ > 0) {
      // A product that overflows cannot equal an existing stride's multiple of
      // a checked view, so it only loses the merge.
      std::int64_t outer = 0;
      if (!__builtin_mul_overflow(stride, extent, &outer) &&
          strides_[rank_ - 1] == outer) {
        extents_[rank_ - 1] *= extent;
        strides_[rank_ - 1] = stride;
        return;
      }
    }
    extents_[rank_] = extent;
    strides_[rank_] = stride;
    ++rank_;
  }

  std::int64_t rows_ = 1;
  std::size_t rank_ = 0;
  // Only the first rank_ entries are ever written or read: clearing 1 KB would
  // cost more than normalising a short row.
  std::array<std::int64_t, kMaxLeading> extents_;
  std::array<std::int64_t, kMaxLeading> strides_;
};

// The address of one row after another.
template <class Byte>
class RowCursor final {
 public:
  RowCursor(const RowLayout& layout, Byte* base, std::int64_t row) noexcept
      : layout_(&layout), base_(base) {
    for (std::size_t axis = layout.rank(); axis-- > 0;) {
      const std::int64_t extent = layout.extent(axis);
      index_[axis] = row % extent;
      row /= extent;
      offset_ += index_[axis] * layout.stride(axis);
    }
  }

  [[nodiscard]] Byte* get() const noexcept { return base_ + offset_; }

  // Bytes from a row to one about `distance` on, at least the next: exact while
  // the innermost of the dimensions lasts, which is good enough to fetch by.
  [[nodiscard]] std::int64_t ahead(std::int64_t distance) const noexcept {
    if (layout_->rank() == 0) return distance;
    const std::int64_t step = layout_->stride(layout_->rank() - 1);
    const std::int64_t size =
        std::max<std::int64_t>(step < 0 ? -step : step, 1);
    return step * std::max<std::int64_t>(distance / size, 1);
  }

  void advance() noexcept {
    for (std::size_t axis = layout_->rank(); axis-- > 0;) {
      offset_ += layout_->stride(axis);
      if (++index_[axis] < layout_->extent(axis)) return;
      offset_ -= layout_->extent(axis) * layout_->stride(axis);
      index_[axis] = 0;
    }
  }

 private:
  const RowLayout* layout_;
  Byte* base_;
  std::int64_t offset_ = 0;
  std::array<std::int64_t, kMaxLeading> index_;
};

}  // namespace xllm_kernel::simd
