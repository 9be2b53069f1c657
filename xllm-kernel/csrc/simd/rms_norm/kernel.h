// The rms_norm kernel over blocks, for any level. Included after a level's
// vec_*.h, inside its target region; chooses no level and checks no argument.
//
// Why this shape: one pass for the sum, one for the values, the row being in L1
// for the second up to 16,384 elements of 16 bits. The sum is bound by the
// latency of fused multiply-add, hidden by as many accumulators as a block has
// registers; the second pass by the arithmetic of rounding for bf16, by loads
// and stores for the others.
#pragma once

#include "simd/core/row_kernels.h"
#include "simd/rms_norm/variants.h"

namespace xllm_kernel::simd {
namespace {  // NOLINT(google-build-namespaces)

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
