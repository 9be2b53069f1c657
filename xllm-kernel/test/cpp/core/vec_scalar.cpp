// The blocks of level scalar, for vec_test.cpp.
#include "simd/core/vec_scalar.h"

#include <array>
#include <bit>
#include <type_traits>

#include "core/vec_levels.h"
#include "core/vec_region.h"

namespace xllm_kernel::test {

LevelBlocks scalar_blocks() {
  return {.level = simd::Level::kScalar,
          .name = "scalar",
          .fp32 = kBlockFormat<simd::Fp32>,
          .fp16 = kBlockFormat<simd::Fp16>,
          .bf16 = kBlockFormat<simd::Bf16>};
}

}  // namespace xllm_kernel::test
