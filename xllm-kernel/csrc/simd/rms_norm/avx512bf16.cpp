// rms_norm with AVX-512 and its bf16 rounding, for bf16; the other dtypes
// have level avx512's kernels. The arithmetic is kernel.h's.
#include "simd/core/vec_avx512bf16.h"
#include "simd/rms_norm/variants.h"

XLLM_KERNEL_TARGET_AVX512BF16_BEGIN

#include "simd/rms_norm/kernel.h"

XLLM_KERNEL_TARGET_END

namespace xllm_kernel::simd::avx512bf16 {

Kernels<RmsNormTask> rms_norm_kernels() noexcept {
  Kernels<RmsNormTask> kernels = avx512::rms_norm_kernels();
  kernels.bf16 = &RmsNorm<Bf16Native, Bf16Native>::run;
  kernels.bf16_by_fp32 = &RmsNorm<Bf16Native, Fp32>::run;
  return kernels;
}

}  // namespace xllm_kernel::simd::avx512bf16
