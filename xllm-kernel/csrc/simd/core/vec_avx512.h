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

// Every NaN as half.h has it.
inline Block canonical(const Block& block) noexcept {
  Block result;
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < 4; ++k) {
    const __mmask16 nan =
        _mm512_cmp_ps_mask(block.r[k], block.r[k], _CMP_UNORD_Q);
    result.r[k] = _mm512_castsi512_ps(_mm512_mask_set1_epi32(
        _mm512_castps_si512(block.r[k]), nan, static_cast<int>(kFp32Nan)));
  }
  return result;
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
  static constexpr bool kStreams = true;
  using Raw = Block;

  static Raw get(const std::byte* from) noexcept {
    const auto* values = reinterpret_cast<const float*>(from);
    Raw result;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      result.r[k] = _mm512_loadu_ps(values + 16 * k);
    }
    return result;
  }
  static Raw get_part(const std::byte* from, std::int64_t count) noexcept {
    const auto* values = reinterpret_cast<const float*>(from);
    Raw result;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      result.r[k] = _mm512_maskz_loadu_ps(mask_of<__mmask16, 16>(count, 16 * k),
                                          values + 16 * k);
    }
    return result;
  }
  static void put(std::byte* to, const Raw& raw) noexcept {
    auto* values = reinterpret_cast<float*>(to);
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      _mm512_storeu_ps(values + 16 * k, raw.r[k]);
    }
  }
  static void stream(std::byte* to, const Raw& raw) noexcept {
    auto* values = reinterpret_cast<float*>(to);
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      _mm512_stream_ps(values + 16 * k, raw.r[k]);
    }
  }
  static void put_part(std::byte* to, const Raw& raw,
                       std::int64_t count) noexcept {
    auto* values = reinterpret_cast<float*>(to);
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      _mm512_mask_storeu_ps(values + 16 * k,
                            mask_of<__mmask16, 16>(count, 16 * k), raw.r[k]);
    }
  }
  static Block widen(const Raw& raw) noexcept { return raw; }
  static Block arrange(const Block& block) noexcept { return block; }
  static Raw narrow(const Block& block) noexcept { return canonical(block); }
  static Raw narrow_numbers(const Block& block) noexcept { return block; }
  static float sum(const Block& b) noexcept {
    return sum_sixteen(_mm512_add_ps(_mm512_add_ps(b.r[0], b.r[2]),
                                     _mm512_add_ps(b.r[1], b.r[3])));
  }
};

// Registers hold elements in order.
struct Fp16 final {
  static constexpr std::int64_t kSize = 2;
  static constexpr bool kStreams = true;
  struct Raw final {
    __m256i r[4];
  };

  static Raw get(const std::byte* from) noexcept {
    const auto* halves = reinterpret_cast<const __m256i*>(from);
    Raw result;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      result.r[k] = _mm256_loadu_si256(halves + k);
    }
    return result;
  }
  static Raw get_part(const std::byte* from, std::int64_t count) noexcept {
    Raw result;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      result.r[k] = _mm256_maskz_loadu_epi16(
          mask_of<__mmask16, 16>(count, 16 * k), from + 32 * k);
    }
    return result;
  }
  static void put(std::byte* to, const Raw& raw) noexcept {
    auto* halves = reinterpret_cast<__m256i*>(to);
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      _mm256_storeu_si256(halves + k, raw.r[k]);
    }
  }
  static void stream(std::byte* to, const Raw& raw) noexcept {
    auto* halves = reinterpret_cast<__m256i*>(to);
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      _mm256_stream_si256(halves + k, raw.r[k]);
    }
  }
  static void put_part(std::byte* to, const Raw& raw,
                       std::int64_t count) noexcept {
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      _mm256_mask_storeu_epi16(to + 32 * k,
                               mask_of<__mmask16, 16>(count, 16 * k), raw.r[k]);
    }
  }
  static Block widen(const Raw& raw) noexcept {
    Block result;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      result.r[k] = _mm512_cvtph_ps(raw.r[k]);
    }
    return result;
  }
  static Block arrange(const Block& block) noexcept { return block; }
  static Raw narrow(const Block& block) noexcept {
    return narrow_numbers(canonical(block));
  }
  static Raw narrow_numbers(const Block& block) noexcept {
    Raw result;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      result.r[k] = _mm512_cvtps_ph(block.r[k], _MM_FROUND_TO_NEAREST_INT);
    }
    return result;
  }
  static float sum(const Block& block) noexcept { return Fp32::sum(block); }
};

// bf16 but for the rounding. Register 2j of a block holds the even elements of
// the j-th thirty-two, 2j + 1 the odd ones: a shift and a mask take them apart
// without a shuffle.
struct Bf16Registers {
  static constexpr std::int64_t kSize = 2;
  static constexpr bool kStreams = true;
  struct Raw final {
    __m512i r[2];
  };

  static Raw get(const std::byte* from) noexcept {
    return {{_mm512_loadu_si512(from), _mm512_loadu_si512(from + 64)}};
  }
  static Raw get_part(const std::byte* from, std::int64_t count) noexcept {
    return {{_mm512_maskz_loadu_epi16(mask_of<__mmask32, 32>(count, 0), from),
             _mm512_maskz_loadu_epi16(mask_of<__mmask32, 32>(count, 32),
                                      from + 64)}};
  }
  static void put(std::byte* to, const Raw& raw) noexcept {
    _mm512_storeu_si512(to, raw.r[0]);
    _mm512_storeu_si512(to + 64, raw.r[1]);
  }
  static void stream(std::byte* to, const Raw& raw) noexcept {
    auto* words = reinterpret_cast<__m512i*>(to);
    _mm512_stream_si512(words, raw.r[0]);
    _mm512_stream_si512(words + 1, raw.r[1]);
  }
  static void put_part(std::byte* to, const Raw& raw,
                       std::int64_t count) noexcept {
    _mm512_mask_storeu_epi16(to, mask_of<__mmask32, 32>(count, 0), raw.r[0]);
    _mm512_mask_storeu_epi16(to + 64, mask_of<__mmask32, 32>(count, 32),
                             raw.r[1]);
  }
  static Block widen(const Raw& raw) noexcept {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
    Block result;
#pragma GCC unroll 2
    for (std::int64_t j = 0; j < 2; ++j) {
      result.r[2 * j] = _mm512_castsi512_ps(_mm512_slli_epi32(raw.r[j], 16));
      result.r[2 * j + 1] =
          _mm512_castsi512_ps(_mm512_and_si512(raw.r[j], upper));
    }
    return result;
  }
  static Block arrange(const Block& block) noexcept {
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14,
                                          12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    Block result;
#pragma GCC unroll 2
    for (std::int64_t j = 0; j < 2; ++j) {
      const __m512 low = block.r[2 * j];
      const __m512 high = block.r[2 * j + 1];
      result.r[2 * j] = _mm512_permutex2var_ps(low, even, high);
      result.r[2 * j + 1] = _mm512_permutex2var_ps(low, odd, high);
    }
    return result;
  }
  // Even and odd elements meet in the tree's last step only.
  static float sum(const Block& b) noexcept {
    return sum_sixteen(_mm512_add_ps(b.r[0], b.r[2])) +
           sum_sixteen(_mm512_add_ps(b.r[1], b.r[3]));
  }
};

struct Bf16 final : Bf16Registers {
  static Raw narrow(const Block& block) noexcept {
    return narrow_numbers(canonical(block));
  }
  // half.h's rounding, which infinities and the canonical NaN pass unharmed.
  static Raw narrow_numbers(const Block& block) noexcept {
    return {{round_pair(block.r[0], block.r[1]),
             round_pair(block.r[2], block.r[3])}};
  }

 private:
  static __m512i round_up(__m512 value) noexcept {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd =
        _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(bits,
                            _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  }
  static __m512i round_pair(__m512 even, __m512 odd) noexcept {
    return _mm512_mask_blend_epi16(kOdd, _mm512_srli_epi32(round_up(even), 16),
                                   round_up(odd));
  }
  static constexpr __mmask32 kOdd = 0xaaaaaaaaU;
};

inline void drain() noexcept { _mm_sfence(); }

}  // namespace
}  // namespace xllm_kernel::simd

XLLM_KERNEL_TARGET_END
