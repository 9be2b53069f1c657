// The table of rms_norm kernels, one entry a level and dtype: dispatch and
// tests both follow it. Checks no argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "simd/core/row_scale.h"
#include "simd/core/rows.h"
#include "simd/core/variants.h"

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

using RmsNormVariant = Variant<RmsNormKernel>;

[[nodiscard]] std::span<const RmsNormVariant> rms_norm_variants() noexcept;

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
