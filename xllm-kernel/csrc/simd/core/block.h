// The block: 64 fp32 values, one for each logical lane of an accumulation. What
// a level's vec_*.h must offer, and what they share. Holds no operator.
//
// A level header, included inside its target region, defines in an unnamed
// namespace:
//   Block                 64 values in registers
//   zero()                all +0
//   fma(a, b, c)          a * b + c, rounded once, value by value
//   mul(a, b), add(a, b)  value by value; a factor b may be one float for all
//   drain()               after the last streaming store
//   Fp32, Fp16, Bf16      formats, each with
//     kSize                        bytes of an element
//     Raw                          64 elements as they are in memory
//     get(from), put(to, raw)      no byte beyond is touched
//     get_part(from, count)        the first 1 .. 63, the rest +0
//     put_part(to, raw, count)     likewise
//     kStreams, stream(to, raw)    whether there are streaming stores, which
//                                  leave the caches alone, and one, for a `to`
//                                  that is aligned to 64
//     widen(raw)                   exactly
//     narrow(block)                to nearest even, NaN canonical
//     narrow_numbers(block)        faster, for blocks without NaN; one that was
//                                  widened from 16 bits stays some NaN
//     arrange(block)               a block that Fp32 loaded, as this format's
//                                  registers hold it
//     sum(block)                   the fixed tree below
//
// Which register holds which element is the format's affair, the same in widen,
// narrow and sum: element-wise arithmetic cannot tell. The tree is over element
// numbers: k with k + 32, then k + 16, 8, 4, 2, 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace xllm_kernel::simd {

// Values of a block, and logical lanes of an accumulation at every level.
inline constexpr std::int64_t kLanes = 64;

}  // namespace xllm_kernel::simd
