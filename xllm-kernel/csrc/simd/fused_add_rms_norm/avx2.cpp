// fused_add_rms_norm with AVX2, FMA and F16C; called only where processor and
// operating system have them. The arithmetic is kernel.h's.
#include "simd/core/vec_avx2.h"
#include "simd/fused_add_rms_norm/variants.h"

XLLM_KERNEL_TARGET_AVX2_BEGIN

#include "simd/fused_add_rms_norm/kernel.h"

namespace xllm_kernel::simd::avx2 {

void fused_add_rms_norm_fp32(FusedAddRmsNormTask task) noexcept {
  fused_add_rms_norm<Fp32>(task);
}
void fused_add_rms_norm_fp16(FusedAddRmsNormTask task) noexcept {
  fused_add_rms_norm<Fp16>(task);
}
void fused_add_rms_norm_bf16(FusedAddRmsNormTask task) noexcept {
  fused_add_rms_norm<Bf16>(task);
}

}  // namespace xllm_kernel::simd::avx2

XLLM_KERNEL_TARGET_END
