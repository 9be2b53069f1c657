// The blocks of level avx512, for vec_test.cpp.
#include "simd/core/vec_avx512.h"

#include <array>
#include <bit>
#include <type_traits>

#include "core/vec_levels.h"

XLLM_KERNEL_TARGET_AVX512_BEGIN

#include "core/vec_region.h"

XLLM_KERNEL_TARGET_END

namespace xllm_kernel::test {

LevelBlocks avx512_blocks() {
  return {.level = simd::Level::kAvx512,
          .name = "avx512",
          .fp32 = kBlockFormat<simd::Fp32>,
          .fp16 = kBlockFormat<simd::Fp16>,
          .bf16 = kBlockFormat<simd::Bf16>};
}

}  // namespace xllm_kernel::test
