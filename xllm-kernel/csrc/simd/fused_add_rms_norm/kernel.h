// The fused_add_rms_norm kernel over blocks, for any level. Included after a
// level's vec_*.h, inside its target region; chooses no level and checks no
// argument.
//
// Why this shape: the pass that sums the squares adds, rounds and stores on the
// way; what it squares is widened from the rounded registers, since the norm
// must see the rounded sum. The second pass is rms_norm's, and reads the sum
// from the first or second cache. Inside the caches arithmetic binds; outside,
// memory and arithmetic take turns, for the second pass touches no memory.
#pragma once

#include "simd/core/row_kernels.h"
#include "simd/fused_add_rms_norm/variants.h"

namespace xllm_kernel::simd {
namespace {  // NOLINT(google-build-namespaces)

// sum = a + b, rounded to the format; returns the sum of the squares of what
// was stored, in sum_of_squares's order. `sum` may be `a` or `b`. A NaN comes
// out as some NaN, and makes the result one.
template <class Format>
float add_and_sum_squares(std::byte* sum, const std::byte* a,
                          const std::byte* b, std::int64_t width) noexcept {
  Block lanes = zero();
  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const std::int64_t at = i * Format::kSize;
    const auto rounded =
        Format::narrow_numbers(add(load<Format>(a + at), load<Format>(b + at)));
    Format::put(sum + at, rounded);
    const Block x = Format::widen(rounded);
    lanes = fma(x, x, lanes);
  }
  if (i < width) {
    const std::int64_t at = i * Format::kSize;
    const std::int64_t left = width - i;
    const auto rounded = Format::narrow_numbers(
        add(load_part<Format>(a + at, left), load_part<Format>(b + at, left)));
    Format::put_part(sum + at, rounded, left);
    const Block x = Format::widen(rounded);
    lanes = fma(x, x, lanes);
  }
  return Format::sum(lanes);
}

// Makes every NaN of a row the canonical one; changes nothing else.
template <class Format>
void make_canonical(std::byte* row, std::int64_t width) noexcept {
  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    std::byte* const at = row + i * Format::kSize;
    Format::put(at, Format::narrow(load<Format>(at)));
  }
  if (i == width) return;
  std::byte* const at = row + i * Format::kSize;
  const std::int64_t left = width - i;
  Format::put_part(at, Format::narrow(load_part<Format>(at, left)), left);
}

template <class Format, class Weight>
struct FusedAddRmsNorm final {
  static void run(FusedAddRmsNormTask& task) noexcept {
    // Looking costs a third of a row's work, so one row goes without.
    const bool weight_finite =
        task.rows > 1 && all_finite<Weight>(task.weight, task.width);
    if (task.width * Format::kSize <= kNarrowRow) {
      for (; task.rows >= kGroup; task.rows -= kGroup) {
        normalise<kGroup>(task, weight_finite);
      }
    }
    for (; task.rows > 0; --task.rows) normalise<1>(task, weight_finite);
  }

 private:
  template <int kCount>
  static void normalise(FusedAddRmsNormTask& task,
                        bool weight_finite) noexcept {
    ScaledRows<kCount> rows;
    for (int row = 0; row < kCount; ++row) {
      std::byte* const sum = task.sum.get();
      const float squares = add_and_sum_squares<Format>(
          sum, task.input.get(), task.residual.get(), task.width);
      rows.scale[row] = row_scale(squares, task.width, task.eps);
      if (!rows.scale[row].finite) make_canonical<Format>(sum, task.width);
      // The input's row has been read, so that the output may take its place.
      rows.x[row] = sum;
      rows.y[row] = task.output.get();
      task.input.advance();
      task.residual.advance();
      task.sum.advance();
      task.output.advance();
    }
    scale_rows<Format, Weight>(rows, task.weight, task.width, weight_finite,
                               Stores::kCached, /*ahead=*/0);
  }
};

}  // namespace
}  // namespace xllm_kernel::simd
