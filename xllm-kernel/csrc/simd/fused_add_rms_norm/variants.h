// The table of fused_add_rms_norm kernels, one entry a level and dtype:
// dispatch and tests both follow it. Checks no argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "simd/core/row_scale.h"
#include "simd/core/rows.h"
#include "simd/core/variants.h"

namespace xllm_kernel::simd {

// Checked arguments: `rows` rows from where the cursors stand. The sum may be
// the residual and the output the input, element by element.
struct FusedAddRmsNormTask {
  RowCursor<const std::byte> input;
  RowCursor<const std::byte> residual;
  RowCursor<std::byte> sum;
  RowCursor<std::byte> output;
  const std::byte* weight;
  std::int64_t rows;
  std::int64_t width;
  float eps;
};

using FusedAddRmsNormKernel = void (*)(FusedAddRmsNormTask task) noexcept;

using FusedAddRmsNormVariant = Variant<FusedAddRmsNormKernel>;

[[nodiscard]] std::span<const FusedAddRmsNormVariant>
fused_add_rms_norm_variants() noexcept;

namespace scalar {
void fused_add_rms_norm_fp32(FusedAddRmsNormTask task) noexcept;
void fused_add_rms_norm_fp16(FusedAddRmsNormTask task) noexcept;
void fused_add_rms_norm_bf16(FusedAddRmsNormTask task) noexcept;
}  // namespace scalar

#if defined(__x86_64__)
namespace avx2 {
void fused_add_rms_norm_fp32(FusedAddRmsNormTask task) noexcept;
void fused_add_rms_norm_fp16(FusedAddRmsNormTask task) noexcept;
void fused_add_rms_norm_bf16(FusedAddRmsNormTask task) noexcept;
}  // namespace avx2

namespace avx512 {
void fused_add_rms_norm_fp32(FusedAddRmsNormTask task) noexcept;
void fused_add_rms_norm_fp16(FusedAddRmsNormTask task) noexcept;
void fused_add_rms_norm_bf16(FusedAddRmsNormTask task) noexcept;
}  // namespace avx512
#elif defined(__aarch64__)
namespace neon {
void fused_add_rms_norm_fp32(FusedAddRmsNormTask task) noexcept;
void fused_add_rms_norm_fp16(FusedAddRmsNormTask task) noexcept;
void fused_add_rms_norm_bf16(FusedAddRmsNormTask task) noexcept;
}  // namespace neon
#endif

}  // namespace xllm_kernel::simd
