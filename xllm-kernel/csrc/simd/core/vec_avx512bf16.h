// vec_avx512.h with the processor's own rounding to bf16. Included by
// AVX-512-BF16 kernel files only, in their target region; holds no operator.
#pragma once

#include "simd/core/vec_avx512.h"

XLLM_KERNEL_TARGET_AVX512BF16_BEGIN

namespace xllm_kernel::simd {
// Internal linkage on purpose: see target.h.
namespace {  // NOLINT(google-build-namespaces)

// VCVTNE2PS2BF16 rounds to nearest even, but gives zero for a subnormal number
// and keeps what it can of a NaN. A block in which either may have happened is
// rounded again by integers. Looking at the 16-bit results costs half of what
// looking at the values would. VDPBF16PS, the other instruction of this level,
// flushes subnormal products and has no place here.
struct Bf16Native final : Bf16Registers {
  static Raw narrow(const Block& block) noexcept {
    const Raw result = rounded(block);
    // As unsigned numbers, 0 for a zero, and up to 254 for a NaN only.
    const __m512i minus_two = _mm512_set1_epi16(-2);
    const __m512i least =
        _mm512_min_epu16(_mm512_mullo_epi16(result.r[0], minus_two),
                         _mm512_mullo_epi16(result.r[1], minus_two));
    const __mmask32 rare =
        _mm512_cmple_epu16_mask(least, _mm512_set1_epi16(254));
    if (__builtin_expect(rare != 0, 0)) return Bf16::narrow(block);
    return result;
  }
  static Raw narrow_numbers(const Block& block) noexcept {
    const Raw result = rounded(block);
    const __m512i magnitude = _mm512_set1_epi16(0x7fff);
    const bool no_zero =
        _kortestz_mask32_u8(_mm512_testn_epi16_mask(result.r[0], magnitude),
                            _mm512_testn_epi16_mask(result.r[1], magnitude));
    if (__builtin_expect(!no_zero, 0)) return Bf16::narrow_numbers(block);
    return result;
  }

 private:
  static Raw rounded(const Block& block) noexcept {
    return {{round_pair(block.r[0], block.r[1]),
             round_pair(block.r[2], block.r[3])}};
  }
  static __m512i round_pair(__m512 even, __m512 odd) noexcept {
    // Element k of the even half goes to 2k, of the odd half to 2k + 1.
    const __m512i order = _mm512_set_epi16(
        31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
        6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(
        order, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even)));
  }
};

}  // namespace
}  // namespace xllm_kernel::simd

XLLM_KERNEL_TARGET_END
