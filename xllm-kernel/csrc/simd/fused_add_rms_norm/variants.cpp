// Lists the fused_add_rms_norm kernels. Adding a level adds its lines here.
#include "simd/fused_add_rms_norm/variants.h"

#include <array>

namespace xllm_kernel::simd {

std::span<const FusedAddRmsNormVariant> fused_add_rms_norm_variants() noexcept {
  static constexpr std::array kVariants = {
      FusedAddRmsNormVariant{Level::kScalar, DType::kFloat32,
                             &scalar::fused_add_rms_norm_fp32},
      FusedAddRmsNormVariant{Level::kScalar, DType::kFloat16,
                             &scalar::fused_add_rms_norm_fp16},
      FusedAddRmsNormVariant{Level::kScalar, DType::kBFloat16,
                             &scalar::fused_add_rms_norm_bf16},
#if defined(__x86_64__)
      FusedAddRmsNormVariant{Level::kAvx2, DType::kFloat32,
                             &avx2::fused_add_rms_norm_fp32},
      FusedAddRmsNormVariant{Level::kAvx2, DType::kFloat16,
                             &avx2::fused_add_rms_norm_fp16},
      FusedAddRmsNormVariant{Level::kAvx2, DType::kBFloat16,
                             &avx2::fused_add_rms_norm_bf16},
      FusedAddRmsNormVariant{Level::kAvx512, DType::kFloat32,
                             &avx512::fused_add_rms_norm_fp32},
      FusedAddRmsNormVariant{Level::kAvx512, DType::kFloat16,
                             &avx512::fused_add_rms_norm_fp16},
      FusedAddRmsNormVariant{Level::kAvx512, DType::kBFloat16,
                             &avx512::fused_add_rms_norm_bf16},
#elif defined(__aarch64__)
      FusedAddRmsNormVariant{Level::kNeon, DType::kFloat32,
                             &neon::fused_add_rms_norm_fp32},
      FusedAddRmsNormVariant{Level::kNeon, DType::kFloat16,
                             &neon::fused_add_rms_norm_fp16},
      FusedAddRmsNormVariant{Level::kNeon, DType::kBFloat16,
                             &neon::fused_add_rms_norm_bf16},
#endif
  };
  return kVariants;
}

}  // namespace xllm_kernel::simd
