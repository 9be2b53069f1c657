// The blocks of level neon, for vec_test.cpp.
#include "simd/core/vec_neon.h"

#include <array>
#include <bit>
#include <type_traits>

#include "core/vec_levels.h"
#include "core/vec_region.h"

namespace xllm_kernel::test {

LevelBlocks neon_blocks() {
  return {.level = simd::Level::kNeon,
          .name = "neon",
          .fp32 = kBlockFormat<simd::Fp32>,
          .fp16 = kBlockFormat<simd::Fp16>,
          .bf16 = kBlockFormat<simd::Bf16>};
}

}  // namespace xllm_kernel::test
