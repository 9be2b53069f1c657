// fused_add_rms_norm with plain C++, for any processor. The arithmetic is
// kernel.h's.
#include "simd/core/vec_scalar.h"
#include "simd/fused_add_rms_norm/kernel.h"
#include "simd/fused_add_rms_norm/variants.h"

namespace xllm_kernel::simd::scalar {

Kernels<FusedAddRmsNormTask> fused_add_rms_norm_kernels() noexcept {
  return kernels_of<FusedAddRmsNorm, FusedAddRmsNormTask, Fp32, Fp16, Bf16>();
}

}  // namespace xllm_kernel::simd::scalar
