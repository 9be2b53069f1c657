// The blocks of level avx512bf16, for vec_test.cpp.
#include "simd/core/vec_avx512bf16.h"

#include <array>
#include <bit>
#include <type_traits>

#include "core/vec_levels.h"

XLLM_KERNEL_TARGET_AVX512BF16_BEGIN

#include "core/vec_region.h"

XLLM_KERNEL_TARGET_END

namespace xllm_kernel::test {

LevelBlocks avx512bf16_blocks() {
  return {.level = simd::Level::kAvx512Bf16,
          .name = "avx512bf16",
          .fp32 = kBlockFormat<simd::Fp32>,
          .fp16 = kBlockFormat<simd::Fp16>,
          .bf16 = kBlockFormat<simd::Bf16Native>};
}

}  // namespace xllm_kernel::test
