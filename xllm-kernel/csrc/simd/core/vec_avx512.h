// Blocks in four registers of sixteen. Included by AVX-512 kernel files only,
// in their target region; holds no operator.
#pragma once

// Some intrinsics of GCC 12's header read a register that they leave undefined
// on purpose, and it warns of that (its bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "simd/core/block.h"
#include "simd/core/half.h"
#include "simd/core/target.h"

XLLM_KERNEL_TARGET_AVX512_BEGIN

namespace xllm_kernel::simd {
// Internal linkage on purpose: see target.h.
namespace {  // NOLINT(google-build-namespaces)

struct Block final {
  __m512 r[4];
};

inline Block zero() noexcept {
  Block result;
#pragma GCC unroll 4
  for (auto& r : result.r) r = _mm512_setzero_ps();
  return result;
}

inline Block fma(const Block& a, const Block& b, const Block& c) noexcept {
  Block result;
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < 4; ++k) {
    result.r[k] = _mm512_fmadd_ps(a.r[k], b.r[k], c.r[k]);
  }
  return result;
}

inline Block mul(const Block& a, const Block& b) noexcept {
  Block result;
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < 4; ++k) {
    result.r[k] = _mm512_mul_ps(a.r[k], b.r[k]);
  }
  return result;
}

inline Block mul(const Block& a, float b) noexcept {
  const __m512 all = _mm512_set1_ps(b);
  Block result;
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < 4; ++k) {
    result.r[k] = _mm512_mul_ps(a.r[k], all);
  }
  return result;
}

inline Block add(const Block& a, const Block& b) noexcept {
  Block result;
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < 4; ++k) {
    result.r[k] = _mm512_add_ps(a.r[k], b.r[k]);
  }
  return result;
}

inline __m512 canonical(__m512 value) noexcept {
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_castsi512_ps(_mm512_mask_set1_epi32(
      _mm512_castps_si512(value), nan, static_cast<int>(kFp32Nan)));
}

// The tree's last four steps over eight values.
inline float sum_eight(__m256 eight) noexcept {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline float sum_sixteen(__m512 sixteen) noexcept {
  return sum_eight(_mm256_add_ps(_mm512_castps512_ps256(sixteen),
                                 _mm512_extractf32x8_ps(sixteen, 1)));
}

// Which of `kCount` elements from `first` on lie below `count`.
template <class Mask, int kCount>
inline Mask mask_of(std::int64_t count, std::int64_t first) noexcept {
  const std::int64_t left = count - first;
  if (left <= 0) return 0;
  if (left >= kCount) return static_cast<Mask>(~Mask{0});
  return static_cast<Mask>((std::uint64_t{1} << left) - 1);
}

// Registers hold elements in order.
struct Fp32 final {
  static constexpr std::int64_t kSize = 4;

  static Block load(const std::byte* from) noexcept {
    const auto* values = reinterpret_cast<const float*>(from);
    Block result;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      result.r[k] = _mm512_loadu_ps(values + 16 * k);
    }
    return result;
  }
  static Block load_part(const std::byte* from, std::int64_t count) noexcept {
    const auto* values = reinterpret_cast<const float*>(from);
    Block result;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      result.r[k] = _mm512_maskz_loadu_ps(mask_of<__mmask16, 16>(count, 16 * k),
                                          values + 16 * k);
    }
    return result;
  }
  static void store(std::byte* to, const Block& block) noexcept {
    auto* values = reinterpret_cast<float*>(to);
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      _mm512_storeu_ps(values + 16 * k, canonical(block.r[k]));
    }
  }
  static void store_part(std::byte* to, const Block& block,
                         std::int64_t count) noexcept {
    auto* values = reinterpret_cast<float*>(to);
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      _mm512_mask_storeu_ps(values + 16 * k,
                            mask_of<__mmask16, 16>(count, 16 * k),
                            canonical(block.r[k]));
    }
  }
  static float sum(const Block& b) noexcept {
    return sum_sixteen(_mm512_add_ps(_mm512_add_ps(b.r[0], b.r[2]),
                                     _mm512_add_ps(b.r[1], b.r[3])));
  }
};

// Registers hold elements in order.
struct Fp16 final {
  static constexpr std::int64_t kSize = 2;

  static Block load(const std::byte* from) noexcept {
    const auto* halves = reinterpret_cast<const __m256i*>(from);
    Block result;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      result.r[k] = _mm512_cvtph_ps(_mm256_loadu_si256(halves + k));
    }
    return result;
  }
  static Block load_part(const std::byte* from, std::int64_t count) noexcept {
    Block result;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      result.r[k] = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(
          mask_of<__mmask16, 16>(count, 16 * k), from + 32 * k));
    }
    return result;
  }
  static void store(std::byte* to, const Block& block) noexcept {
    auto* halves = reinterpret_cast<__m256i*>(to);
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      _mm256_storeu_si256(halves + k, narrow(block.r[k]));
    }
  }
  static void store_part(std::byte* to, const Block& block,
                         std::int64_t count) noexcept {
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      _mm256_mask_storeu_epi16(to + 32 * k,
                               mask_of<__mmask16, 16>(count, 16 * k),
                               narrow(block.r[k]));
    }
  }
  static float sum(const Block& block) noexcept { return Fp32::sum(block); }

 private:
  static __m256i narrow(__m512 value) noexcept {
    return _mm512_cvtps_ph(canonical(value), _MM_FROUND_TO_NEAREST_INT);
  }
};

// Register 2j holds the even elements of the j-th thirty-two, 2j + 1 the odd
// ones: a shift and a mask take them apart without a shuffle.
struct Bf16 final {
  static constexpr std::int64_t kSize = 2;

  static Block load(const std::byte* from) noexcept {
    return widen(_mm512_loadu_si512(from), _mm512_loadu_si512(from + 64));
  }
  static Block load_part(const std::byte* from, std::int64_t count) noexcept {
    return widen(
        _mm512_maskz_loadu_epi16(mask_of<__mmask32, 32>(count, 0), from),
        _mm512_maskz_loadu_epi16(mask_of<__mmask32, 32>(count, 32), from + 64));
  }
  static void store(std::byte* to, const Block& block) noexcept {
    _mm512_storeu_si512(to, narrow(block.r[0], block.r[1]));
    _mm512_storeu_si512(to + 64, narrow(block.r[2], block.r[3]));
  }
  static void store_part(std::byte* to, const Block& block,
                         std::int64_t count) noexcept {
    _mm512_mask_storeu_epi16(to, mask_of<__mmask32, 32>(count, 0),
                             narrow(block.r[0], block.r[1]));
    _mm512_mask_storeu_epi16(to + 64, mask_of<__mmask32, 32>(count, 32),
                             narrow(block.r[2], block.r[3]));
  }
  // Even and odd elements meet in the tree's last step only.
  static float sum(const Block& b) noexcept {
    return sum_sixteen(_mm512_add_ps(b.r[0], b.r[2])) +
           sum_sixteen(_mm512_add_ps(b.r[1], b.r[3]));
  }

 private:
  static Block widen(__m512i first, __m512i second) noexcept {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
    Block result;
    result.r[0] = _mm512_castsi512_ps(_mm512_slli_epi32(first, 16));
    result.r[1] = _mm512_castsi512_ps(_mm512_and_si512(first, upper));
    result.r[2] = _mm512_castsi512_ps(_mm512_slli_epi32(second, 16));
    result.r[3] = _mm512_castsi512_ps(_mm512_and_si512(second, upper));
    return result;
  }
  // half.h's rounding on thirty-two values as 16-bit integers: the upper halves
  // go up by one where the lower ones are over half, or just half and the upper
  // is odd. Infinities and NaNs are rare, so one test serves all.
  static __m512i narrow(__m512 even, __m512 odd) noexcept {
    const __m512i a = _mm512_castps_si512(even);
    const __m512i b = _mm512_castps_si512(odd);
    constexpr __mmask32 kOdd = 0xaaaaaaaaU;
    const __m512i high =
        _mm512_mask_blend_epi16(kOdd, _mm512_srli_epi32(a, 16), b);
    const __m512i low =
        _mm512_mask_blend_epi16(kOdd, a, _mm512_slli_epi32(b, 16));
    const __m512i least =
        _mm512_sub_epi16(_mm512_set1_epi16(static_cast<std::int16_t>(0x8000)),
                         _mm512_and_si512(high, _mm512_set1_epi16(1)));
    const __mmask32 up = _mm512_cmpgt_epu16_mask(low, least);
    __m512i result =
        _mm512_mask_sub_epi16(high, up, high, _mm512_set1_epi16(-1));
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    const __mmask32 special =
        _mm512_cmpeq_epi16_mask(_mm512_and_si512(high, exponent), exponent);
    if (__builtin_expect(special != 0, 0)) {
      const __mmask32 infinite =
          _mm512_cmpeq_epi16_mask(low, _mm512_setzero_si512()) &
          _mm512_testn_epi16_mask(high, _mm512_set1_epi16(0x7f));
      result = _mm512_mask_mov_epi16(result, special & infinite, high);
      result = _mm512_mask_mov_epi16(
          result, special & ~infinite,
          _mm512_set1_epi16(static_cast<std::int16_t>(kBf16Nan)));
    }
    return result;
  }
};

}  // namespace
}  // namespace xllm_kernel::simd

XLLM_KERNEL_TARGET_END
