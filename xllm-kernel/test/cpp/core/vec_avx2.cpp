// The blocks of level avx2, for vec_test.cpp.
#include "simd/core/vec_avx2.h"

#include <array>
#include <bit>
#include <type_traits>

#include "core/vec_levels.h"

XLLM_KERNEL_TARGET_AVX2_BEGIN

#include "core/vec_region.h"

XLLM_KERNEL_TARGET_END

namespace xllm_kernel::test {

LevelBlocks avx2_blocks() {
  return {.level = simd::Level::kAvx2,
          .name = "avx2",
          .fp32 = kBlockFormat<simd::Fp32>,
          .fp16 = kBlockFormat<simd::Fp16>,
          .bf16 = kBlockFormat<simd::Bf16>};
}

}  // namespace xllm_kernel::test
