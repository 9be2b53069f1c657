// The fused_add_rms_norm kernel over blocks, for any level. Included after a
// level's vec_*.h, inside its target region; chooses no level and checks no
// argument.
//
// Why this shape: the pass that sums the squares has the row in registers, so
// it adds, rounds and stores on the way, and the second pass reads the sum from
// L1. What it squares is read back from where it was stored: the norm must see
// the rounded sum, and a store followed by a load of the same width costs a
// few cycles of latency that neighbouring blocks hide.
#pragma once

#include "simd/core/row_kernels.h"
#include "simd/fused_add_rms_norm/variants.h"

namespace xllm_kernel::simd {
namespace {  // NOLINT(google-build-namespaces)

// sum = a + b, rounded to the format; returns the sum of the squares of what
// was stored, in sum_of_squares's order. `sum` may be `a` or `b`.
template <class Format>
float add_and_sum_squares(std::byte* sum, const std::byte* a,
                          const std::byte* b, std::int64_t width) noexcept {
  Block lanes = zero();
  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const std::int64_t at = i * Format::kSize;
    Format::store(sum + at, add(Format::load(a + at), Format::load(b + at)));
    const Block x = Format::load(sum + at);
    lanes = fma(x, x, lanes);
  }
  if (i < width) {
    const std::int64_t at = i * Format::kSize;
    const std::int64_t left = width - i;
    Format::store_part(
        sum + at,
        add(Format::load_part(a + at, left), Format::load_part(b + at, left)),
        left);
    const Block x = Format::load_part(sum + at, left);
    lanes = fma(x, x, lanes);
  }
  return Format::sum(lanes);
}

template <class Format>
void fused_add_rms_norm(FusedAddRmsNormTask& task) noexcept {
  for (std::int64_t row = 0; row < task.rows; ++row) {
    std::byte* sum = task.sum.get();
    const float squares = add_and_sum_squares<Format>(
        sum, task.input.get(), task.residual.get(), task.width);
    // The input's row has been read, so that the output may take its place.
    scale_row<Format>(task.output.get(), sum, task.weight, task.width,
                      row_scale(squares, task.width, task.eps));
    task.input.advance();
    task.residual.advance();
    task.sum.advance();
    task.output.advance();
  }
}

}  // namespace
}  // namespace xllm_kernel::simd
