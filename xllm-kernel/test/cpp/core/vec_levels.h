// The block types of every level behind plain functions, so that one set of
// tests serves all. The functions of a level crash machines without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>

#include "simd/core/levels.h"

namespace xllm_kernel::test {

// One format of one level. Elements are in order, whatever the registers hold;
// `count` of them, 1 .. 64, are in memory.
struct BlockFormat {
  std::int64_t size;
  // Always writes 64 floats.
  void (*widen)(const std::byte* from, std::int64_t count, float* to);
  // Always reads 64 floats.
  void (*narrow)(const float* from, std::int64_t count, std::byte* to);
  // Both 64: the second takes no NaN, the third gives what it is given.
  void (*narrow_numbers)(const float* from, std::byte* to);
  void (*arrange)(const float* from, float* to);
  float (*sum)(const float* from);
};

struct LevelBlocks {
  simd::Level level;
  const char* name;
  BlockFormat fp32;
  BlockFormat fp16;
  BlockFormat bf16;
};

// For messages.
inline void PrintTo(  // NOLINT(readability-identifier-naming)
    const LevelBlocks& blocks, std::ostream* out) {
  *out << "blocks of level " << blocks.name;
}

// One a file of this folder.
LevelBlocks scalar_blocks();
#if defined(__x86_64__)
LevelBlocks avx2_blocks();
LevelBlocks avx512_blocks();
LevelBlocks avx512bf16_blocks();
#elif defined(__aarch64__)
LevelBlocks neon_blocks();
#endif

}  // namespace xllm_kernel::test
