// The rms_norm kernel over blocks, for any level. Included after a level's
// vec_*.h, inside its target region; chooses no level and checks no argument.
//
// Why this shape: one pass for the sum, one for the values, the row being in
// the first or second cache for the latter; narrow rows in groups (see
// row_kernels.h). Inside the caches 16-bit rows are bound by arithmetic: with
// AVX-512, two instructions a cycle, about 33 for 64 elements (8 in the first
// pass; in the second 8 to widen row and weight, 8 products, 4 to round, 3 to
// look for what the rounding may not have got right, 2 stores). Outside, by
// memory: values are streamed past the caches while the next rows are fetched.
#pragma once

#include "simd/core/row_kernels.h"
#include "simd/rms_norm/variants.h"

namespace xllm_kernel::simd {
namespace {  // NOLINT(google-build-namespaces)

template <class Format, class Weight>
struct RmsNorm final {
  static void run(RmsNormTask& task) noexcept {
    // Looking costs a third of a row's work, so one row goes without.
    const bool weight_finite =
        task.rows > 1 && all_finite<Weight>(task.weight, task.width);
    const std::int64_t ahead = task.input.ahead(kFetchAhead);
    if (task.width * Format::kSize <= kNarrowRow) {
      for (; task.rows >= kGroup; task.rows -= kGroup) {
        normalise<kGroup>(task, weight_finite, ahead);
      }
    }
    for (; task.rows > 0; --task.rows) {
      normalise<1>(task, weight_finite, ahead);
    }
    if (task.stores == Stores::kStreamed) drain();
  }

 private:
  template <int kCount>
  static void normalise(RmsNormTask& task, bool weight_finite,
                        std::int64_t ahead) noexcept {
    ScaledRows<kCount> rows;
    for (int row = 0; row < kCount; ++row) {
      rows.x[row] = task.input.get();
      rows.y[row] = task.output.get();
      task.input.advance();
      task.output.advance();
    }
    for (int row = 0; row < kCount; ++row) {
      const float sum = sum_of_squares<Format>(rows.x[row], task.width);
      rows.scale[row] = row_scale(sum, task.width, task.eps);
    }
    scale_rows<Format, Weight>(rows, task.weight, task.width, weight_finite,
                               task.stores, ahead);
  }
};

}  // namespace
}  // namespace xllm_kernel::simd
