// Lists the rms_norm kernels. Adding a level adds its lines here.
#include "simd/rms_norm/variants.h"

#include <array>

namespace xllm_kernel::simd {

std::span<const RmsNormVariant> rms_norm_variants() noexcept {
  static constexpr std::array kVariants = {
      RmsNormVariant{Level::kScalar, DType::kFloat32, &scalar::rms_norm_fp32},
      RmsNormVariant{Level::kScalar, DType::kFloat16, &scalar::rms_norm_fp16},
      RmsNormVariant{Level::kScalar, DType::kBFloat16, &scalar::rms_norm_bf16},
#if defined(__x86_64__)
      RmsNormVariant{Level::kAvx2, DType::kFloat32, &avx2::rms_norm_fp32},
      RmsNormVariant{Level::kAvx2, DType::kFloat16, &avx2::rms_norm_fp16},
      RmsNormVariant{Level::kAvx2, DType::kBFloat16, &avx2::rms_norm_bf16},
      RmsNormVariant{Level::kAvx512, DType::kFloat32, &avx512::rms_norm_fp32},
      RmsNormVariant{Level::kAvx512, DType::kFloat16, &avx512::rms_norm_fp16},
      RmsNormVariant{Level::kAvx512, DType::kBFloat16, &avx512::rms_norm_bf16},
#elif defined(__aarch64__)
      RmsNormVariant{Level::kNeon, DType::kFloat32, &neon::rms_norm_fp32},
      RmsNormVariant{Level::kNeon, DType::kFloat16, &neon::rms_norm_fp16},
      RmsNormVariant{Level::kNeon, DType::kBFloat16, &neon::rms_norm_bf16},
#endif
  };
  return kVariants;
}

}  // namespace xllm_kernel::simd
