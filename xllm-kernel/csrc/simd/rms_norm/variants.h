// The table of rms_norm kernels, one entry a level and dtype: dispatch and
// tests both follow it. Checks no argument.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "simd/core/levels.h"
#include "simd/core/rows.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::simd {

// Checked arguments: `rows` rows from where the two cursors stand.
struct RmsNormTask {
  RowCursor<const std::byte> input;
  RowCursor<std::byte> output;
  const std::byte* weight;
  std::int64_t rows;
  std::int64_t width;
  float eps;
};

using RmsNormKernel = void (*)(RmsNormTask task) noexcept;

struct RmsNormVariant {
  Level level;
  DType dtype;
  RmsNormKernel kernel;
};

[[nodiscard]] std::span<const RmsNormVariant> rms_norm_variants() noexcept;

// The factor of a row from its sum of squares. A width over 2^24 is rounded to
// fp32, at every level alike.
[[nodiscard]] inline float row_scale(float sum, std::int64_t width,
                                     float eps) noexcept {
  return 1.0F / std::sqrt(sum / static_cast<float>(width) + eps);
}

namespace scalar {
void rms_norm_fp32(RmsNormTask task) noexcept;
void rms_norm_fp16(RmsNormTask task) noexcept;
void rms_norm_bf16(RmsNormTask task) noexcept;
}  // namespace scalar

#if defined(__x86_64__)
namespace avx2 {
void rms_norm_fp32(RmsNormTask task) noexcept;
void rms_norm_fp16(RmsNormTask task) noexcept;
void rms_norm_bf16(RmsNormTask task) noexcept;
}  // namespace avx2

namespace avx512 {
void rms_norm_fp32(RmsNormTask task) noexcept;
void rms_norm_fp16(RmsNormTask task) noexcept;
void rms_norm_bf16(RmsNormTask task) noexcept;
}  // namespace avx512
#elif defined(__aarch64__)
namespace neon {
void rms_norm_fp32(RmsNormTask task) noexcept;
void rms_norm_fp16(RmsNormTask task) noexcept;
void rms_norm_bf16(RmsNormTask task) noexcept;
}  // namespace neon
#endif

}  // namespace xllm_kernel::simd
