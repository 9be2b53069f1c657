// fused_add_rms_norm on 64-bit Arm, all of which has NEON. The arithmetic is
// kernel.h's; tested under emulation, its speed unknown.
#include "simd/core/vec_neon.h"
#include "simd/fused_add_rms_norm/kernel.h"
#include "simd/fused_add_rms_norm/variants.h"

namespace xllm_kernel::simd::neon {

void fused_add_rms_norm_fp32(FusedAddRmsNormTask task) noexcept {
  fused_add_rms_norm<Fp32>(task);
}
void fused_add_rms_norm_fp16(FusedAddRmsNormTask task) noexcept {
  fused_add_rms_norm<Fp16>(task);
}
void fused_add_rms_norm_bf16(FusedAddRmsNormTask task) noexcept {
  fused_add_rms_norm<Bf16>(task);
}

}  // namespace xllm_kernel::simd::neon
