// rms_norm with what every 64-bit Arm processor has. The arithmetic is
// kernel.h's.
#include "simd/core/vec_neon.h"
#include "simd/rms_norm/kernel.h"
#include "simd/rms_norm/variants.h"

namespace xllm_kernel::simd::neon {

Kernels<RmsNormTask> rms_norm_kernels() noexcept {
  return kernels_of<RmsNorm, RmsNormTask, Fp32, Fp16, Bf16>();
}

}  // namespace xllm_kernel::simd::neon
