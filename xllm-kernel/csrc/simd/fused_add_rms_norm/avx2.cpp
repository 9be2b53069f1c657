// fused_add_rms_norm with AVX2, FMA and F16C; called only where processor and
// operating system have them. The arithmetic is kernel.h's.
#include "simd/core/vec_avx2.h"
#include "simd/fused_add_rms_norm/variants.h"

XLLM_KERNEL_TARGET_AVX2_BEGIN

#include "simd/fused_add_rms_norm/kernel.h"

XLLM_KERNEL_TARGET_END

namespace xllm_kernel::simd::avx2 {

Kernels<FusedAddRmsNormTask> fused_add_rms_norm_kernels() noexcept {
  return kernels_of<FusedAddRmsNorm, FusedAddRmsNormTask, Fp32, Fp16, Bf16>();
}

}  // namespace xllm_kernel::simd::avx2
