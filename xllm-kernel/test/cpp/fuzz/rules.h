// The public headers' rules in 128-bit arithmetic: which views can be made,
// which operands are taken. Uses nothing of csrc; touches no memory.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <limits>
#include <vector>

#include "fuzz/shapes.h"

namespace xllm_kernel::fuzz {

__extension__ using Wide = __int128;

// Bytes from the base: of the lowest, and past the highest.
struct Reach {
  Wide low = 0;
  Wide high = 0;
};

[[nodiscard]] inline bool is_empty(const Shape& shape) {
  return std::ranges::count(shape.extents, 0) > 0;
}

// Each step is cut off where only its being far too large matters.
[[nodiscard]] inline Reach reach_of(const Shape& shape) {
  if (is_empty(shape)) return {};
  constexpr Wide kFar = Wide{1} << 100;
  const Wide size = dtype_size(shape.dtype);
  Reach reach{.high = size};
  for (std::size_t axis = 0; axis < shape.extents.size(); ++axis) {
    const Wide last =
        Wide{shape.strides[axis]} * (Wide{shape.extents[axis]} - 1);
    (last < 0 ? reach.low : reach.high) += std::clamp(last, -kFar, kFar) * size;
  }
  return reach;
}

// Whether core.h lets a view be made at an address that is not null.
[[nodiscard]] inline bool can_exist(const Shape& shape, std::uintptr_t base) {
  constexpr Wide kMost = std::numeric_limits<std::int64_t>::max() / 2;
  const std::int64_t size = dtype_size(shape.dtype);
  if (size == 0 || shape.strides.size() != shape.extents.size() ||
      std::ranges::any_of(shape.extents, [](auto n) { return n < 0; })) {
    return false;
  }
  if (is_empty(shape)) return true;
  Wide bytes = size;
  for (const std::int64_t extent : shape.extents) {
    bytes *= extent;
    if (bytes > kMost) return false;
  }
  const Reach reach = reach_of(shape);
  constexpr Wide kAddresses = std::numeric_limits<std::uintptr_t>::max();
  return reach.high <= kMost && reach.low >= -kMost &&
         base % static_cast<std::uintptr_t>(size) == 0 &&
         Wide{base} + reach.low >= 0 && Wide{base} + reach.high <= kAddresses;
}

[[nodiscard]] inline bool last_is_dense(const Shape& shape) {
  return shape.strides.back() == 1 || shape.extents.back() == 1;
}

[[nodiscard]] inline bool is_like(const Shape& shape, const Shape& model) {
  return shape.extents == model.extents && shape.dtype == model.dtype &&
         last_is_dense(shape);
}

[[nodiscard]] inline bool can_be_read(const Shape& input, const Shape& weight,
                                      double eps) {
  return !input.extents.empty() && weight.extents.size() == 1 &&
         (weight.dtype == input.dtype || weight.dtype == DType::kFloat32) &&
         input.extents.back() >= 1 &&
         weight.extents[0] == input.extents.back() && last_is_dense(input) &&
         last_is_dense(weight) && eps >= 0.0 && eps <= double{FLT_MAX};
}

// Whether the bytes between first and last of two shapes meet.
[[nodiscard]] inline bool ranges_meet(const Shape& a, const Shape& b) {
  if (a.memory != b.memory || is_empty(a) || is_empty(b)) return false;
  const Reach one = reach_of(a);
  const Reach other = reach_of(b);
  return a.shift + one.low < b.shift + other.high &&
         b.shift + other.low < a.shift + one.high;
}

[[nodiscard]] inline bool is_same(const Shape& a, const Shape& b) {
  if (a.memory != b.memory || a.shift != b.shift || a.dtype != b.dtype ||
      a.extents != b.extents) {
    return false;
  }
  for (std::size_t axis = 0; axis < a.extents.size(); ++axis) {
    if (a.extents[axis] > 1 && a.strides[axis] != b.strides[axis]) return false;
  }
  return true;
}

// Bytes from the base to each row.
[[nodiscard]] inline std::vector<std::int64_t> row_offsets(const Shape& shape) {
  const std::int64_t size = dtype_size(shape.dtype);
  std::vector<std::int64_t> offsets{0};
  for (std::size_t axis = 0; axis + 1 < shape.extents.size(); ++axis) {
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t n = 0; n < shape.extents[axis]; ++n) {
        next.push_back(offset + n * shape.strides[axis] * size);
      }
    }
    offsets = std::move(next);
  }
  return offsets;
}

// What the headers say of a call.
enum class Verdict : std::uint8_t { kTaken, kRefused, kEither };

// Whether each dimension steps over all that those after it cover: rows that
// are apart in a way that must be recognised.
[[nodiscard]] inline bool rows_nest(const Shape& shape) {
  Wide covered = shape.extents.back();
  for (std::size_t axis = shape.extents.size() - 1; axis-- > 0;) {
    if (shape.extents[axis] == 1) continue;
    const Wide stride = shape.strides[axis];
    const Wide step = stride < 0 ? -stride : stride;
    if (step < covered) return false;
    covered += step * (shape.extents[axis] - 1);
  }
  return true;
}

// Of rows that are to be written: those that share a byte are refused; those
// that interleave without touching may be.
[[nodiscard]] inline Verdict verdict_on_rows(const Shape& shape) {
  if (is_empty(shape) || rows_nest(shape)) return Verdict::kTaken;
  const Wide row = Wide{shape.extents.back()} * dtype_size(shape.dtype);
  Wide bytes = row;
  for (std::size_t axis = 0; axis + 1 < shape.extents.size(); ++axis) {
    bytes *= shape.extents[axis];
  }
  const Reach reach = reach_of(shape);
  if (bytes > reach.high - reach.low) return Verdict::kRefused;
  std::vector<std::int64_t> offsets = row_offsets(shape);
  std::ranges::sort(offsets);
  for (std::size_t n = 1; n < offsets.size(); ++n) {
    if (offsets[n] - offsets[n - 1] < row) return Verdict::kRefused;
  }
  return Verdict::kEither;
}

}  // namespace xllm_kernel::fuzz
