// The block: 64 fp32 values, one for each logical lane of an accumulation. What
// a level's vec_*.h must offer, and what they share. Holds no operator.
//
// A level header, included inside its target region, defines in an unnamed
// namespace:
//   Block                 64 values in registers
//   zero()                all +0
//   fma(a, b, c)          a * b + c, rounded once, value by value
//   mul(a, b), add(a, b)  value by value; b may be one float for all
//   Fp32, Fp16, Bf16      formats, each with
//     kSize                        bytes of an element
//     load(from)                   64 elements, widened exactly
//     load_part(from, count)       the first 1 .. 63, the rest +0; no byte
//                                  beyond is read
//     store(to, block)             rounded to nearest even, NaN canonical
//     store_part(to, block, count) likewise, the first 1 .. 63
//     sum(block)                   the fixed tree below
//
// Which register holds which element is the format's affair, the same in load,
// store and sum: element-wise arithmetic cannot tell. The tree is over element
// numbers: k with k + 32, then k + 16, 8, 4, 2, 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace xllm_kernel::simd {

// Values of a block, and logical lanes of an accumulation at every level.
inline constexpr std::int64_t kLanes = 64;

}  // namespace xllm_kernel::simd
