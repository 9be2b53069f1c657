// What kernels do to a whole row, over blocks, for any level. Included after a
// level's vec_*.h, inside its target region; holds no operator.
#pragma once

#include "simd/core/block.h"

namespace xllm_kernel::simd {
namespace {  // NOLINT(google-build-namespaces)

// Element i is added to lane i % 64, in order of i; then the fixed tree.
template <class Format>
float sum_of_squares(const std::byte* row, std::int64_t width) noexcept {
  Block lanes = zero();
  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const Block x = Format::load(row + i * Format::kSize);
    lanes = fma(x, x, lanes);
  }
  if (i < width) {
    // A missing element adds +0 to its lane, which changes no bit of it.
    const Block x = Format::load_part(row + i * Format::kSize, width - i);
    lanes = fma(x, x, lanes);
  }
  return Format::sum(lanes);
}

// y = (x * scale) * weight, rounded to the format once. y may be x.
template <class Format>
void scale_row(std::byte* y, const std::byte* x, const std::byte* weight,
               std::int64_t width, float scale) noexcept {
  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const std::int64_t at = i * Format::kSize;
    Format::store(y + at, mul(mul(Format::load(x + at), scale),
                              Format::load(weight + at)));
  }
  if (i < width) {
    const std::int64_t at = i * Format::kSize;
    const std::int64_t left = width - i;
    Format::store_part(y + at,
                       mul(mul(Format::load_part(x + at, left), scale),
                           Format::load_part(weight + at, left)),
                       left);
  }
}

}  // namespace
}  // namespace xllm_kernel::simd
