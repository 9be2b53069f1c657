// fused_add_rms_norm with AVX-512 and its bf16 rounding, for bf16; the other
// dtypes have level avx512's kernels. The arithmetic is kernel.h's.
#include "simd/core/vec_avx512bf16.h"
#include "simd/fused_add_rms_norm/variants.h"

XLLM_KERNEL_TARGET_AVX512BF16_BEGIN

#include "simd/fused_add_rms_norm/kernel.h"

XLLM_KERNEL_TARGET_END

namespace xllm_kernel::simd::avx512bf16 {

Kernels<FusedAddRmsNormTask> fused_add_rms_norm_kernels() noexcept {
  Kernels<FusedAddRmsNormTask> kernels = avx512::fused_add_rms_norm_kernels();
  kernels.bf16 = &FusedAddRmsNorm<Bf16Native, Bf16Native>::run;
  kernels.bf16_by_fp32 = &FusedAddRmsNorm<Bf16Native, Fp32>::run;
  return kernels;
}

}  // namespace xllm_kernel::simd::avx512bf16
