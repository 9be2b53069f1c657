// rms_norm in plain C++, for machines without a SIMD level. The arithmetic is
// kernel.h's.
#include "simd/core/vec_scalar.h"
#include "simd/rms_norm/kernel.h"
#include "simd/rms_norm/variants.h"

namespace xllm_kernel::simd::scalar {

void rms_norm_fp32(RmsNormTask task) noexcept { rms_norm<Fp32>(task); }
void rms_norm_fp16(RmsNormTask task) noexcept { rms_norm<Fp16>(task); }
void rms_norm_bf16(RmsNormTask task) noexcept { rms_norm<Bf16>(task); }

}  // namespace xllm_kernel::simd::scalar
