// fused_add_rms_norm in plain C++, for machines without a SIMD level. The
// arithmetic is kernel.h's.
#include "simd/core/vec_scalar.h"
#include "simd/fused_add_rms_norm/kernel.h"
#include "simd/fused_add_rms_norm/variants.h"

namespace xllm_kernel::simd::scalar {

void fused_add_rms_norm_fp32(FusedAddRmsNormTask task) noexcept {
  fused_add_rms_norm<Fp32>(task);
}
void fused_add_rms_norm_fp16(FusedAddRmsNormTask task) noexcept {
  fused_add_rms_norm<Fp16>(task);
}
void fused_add_rms_norm_bf16(FusedAddRmsNormTask task) noexcept {
  fused_add_rms_norm<Bf16>(task);
}

}  // namespace xllm_kernel::simd::scalar
