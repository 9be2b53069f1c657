// The rms_norm kernel over blocks, for any level. Included after a level's
// vec_*.h, inside its target region; chooses no level and checks no argument.
//
// Why this shape: one pass for the sum, one for the values, the row being in L1
// for the second up to 16,384 elements of 16 bits. The sum is bound by the
// latency of fused multiply-add, hidden by as many accumulators as a block has
// registers; the second pass by the arithmetic of rounding for bf16, by loads
// and stores for the others.
#pragma once

#include "simd/core/block.h"
#include "simd/rms_norm/variants.h"

namespace xllm_kernel::simd {
namespace {  // NOLINT(google-build-namespaces)

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

template <class Format>
void rms_norm(RmsNormTask& task) noexcept {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    const std::byte* x = task.input.get();
    const float sum = sum_of_squares<Format>(x, task.width);
    scale_row<Format>(task.output.get(), x, task.weight, task.width,
                      row_scale(sum, task.width, task.eps));
    task.input.advance();
    task.output.advance();
  }
}

}  // namespace
}  // namespace xllm_kernel::simd
