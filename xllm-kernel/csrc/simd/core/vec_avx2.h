// Blocks in eight registers of eight. Included by AVX2 kernel files only, in
// their target region; holds no operator.
#pragma once

#include <immintrin.h>

#include "simd/core/block.h"
#include "simd/core/half.h"
#include "simd/core/target.h"

XLLM_KERNEL_TARGET_AVX2_BEGIN

namespace xllm_kernel::simd {
// Internal linkage on purpose: see target.h.
namespace {  // NOLINT(google-build-namespaces)

struct Block final {
  __m256 r[8];
};

inline Block zero() noexcept {
  Block result;
#pragma GCC unroll 8
  for (auto& r : result.r) r = _mm256_setzero_ps();
  return result;
}

inline Block fma(const Block& a, const Block& b, const Block& c) noexcept {
  Block result;
#pragma GCC unroll 8
  for (std::int64_t k = 0; k < 8; ++k) {
    result.r[k] = _mm256_fmadd_ps(a.r[k], b.r[k], c.r[k]);
  }
  return result;
}

inline Block mul(const Block& a, const Block& b) noexcept {
  Block result;
#pragma GCC unroll 8
  for (std::int64_t k = 0; k < 8; ++k) {
    result.r[k] = _mm256_mul_ps(a.r[k], b.r[k]);
  }
  return result;
}

inline Block mul(const Block& a, float b) noexcept {
  const __m256 all = _mm256_set1_ps(b);
  Block result;
#pragma GCC unroll 8
  for (std::int64_t k = 0; k < 8; ++k) {
    result.r[k] = _mm256_mul_ps(a.r[k], all);
  }
  return result;
}

inline Block add(const Block& a, const Block& b) noexcept {
  Block result;
#pragma GCC unroll 8
  for (std::int64_t k = 0; k < 8; ++k) {
    result.r[k] = _mm256_add_ps(a.r[k], b.r[k]);
  }
  return result;
}

// Every NaN as half.h has it.
inline Block canonical(const Block& block) noexcept {
  const __m256 nan =
      _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(kFp32Nan)));
  Block result;
#pragma GCC unroll 8
  for (std::int64_t k = 0; k < 8; ++k) {
    const __m256 r = block.r[k];
    result.r[k] = _mm256_blendv_ps(r, nan, _mm256_cmp_ps(r, r, _CMP_UNORD_Q));
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

// A part goes by way of a whole block: it is one in a row.
template <class Format>
struct PartByWhole {
  static auto get_part(const std::byte* from, std::int64_t count) noexcept {
    alignas(32) std::byte whole[kLanes * sizeof(std::uint32_t)] = {};
    std::memcpy(whole, from, static_cast<std::size_t>(count * Format::kSize));
    return Format::get(whole);
  }
  template <class Raw>
  static void put_part(std::byte* to, const Raw& raw,
                       std::int64_t count) noexcept {
    alignas(32) std::byte whole[kLanes * sizeof(std::uint32_t)];
    Format::put(whole, raw);
    std::memcpy(to, whole, static_cast<std::size_t>(count * Format::kSize));
  }

 private:
  PartByWhole() = default;
  friend Format;
};

// Registers hold elements in order.
struct Fp32 final : PartByWhole<Fp32> {
  static constexpr std::int64_t kSize = 4;
  static constexpr bool kStreams = true;
  using Raw = Block;

  static Raw get(const std::byte* from) noexcept {
    const auto* values = reinterpret_cast<const float*>(from);
    Raw result;
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      result.r[k] = _mm256_loadu_ps(values + 8 * k);
    }
    return result;
  }
  static void put(std::byte* to, const Raw& raw) noexcept {
    auto* values = reinterpret_cast<float*>(to);
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      _mm256_storeu_ps(values + 8 * k, raw.r[k]);
    }
  }
  static void stream(std::byte* to, const Raw& raw) noexcept {
    auto* values = reinterpret_cast<float*>(to);
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      _mm256_stream_ps(values + 8 * k, raw.r[k]);
    }
  }
  static Block widen(const Raw& raw) noexcept { return raw; }
  static Block arrange(const Block& block) noexcept { return block; }
  static Raw narrow(const Block& block) noexcept { return canonical(block); }
  static Raw narrow_numbers(const Block& block) noexcept { return block; }
  static float sum(const Block& b) noexcept {
    const __m256 s0 = _mm256_add_ps(b.r[0], b.r[4]);
    const __m256 s1 = _mm256_add_ps(b.r[1], b.r[5]);
    const __m256 s2 = _mm256_add_ps(b.r[2], b.r[6]);
    const __m256 s3 = _mm256_add_ps(b.r[3], b.r[7]);
    return sum_eight(
        _mm256_add_ps(_mm256_add_ps(s0, s2), _mm256_add_ps(s1, s3)));
  }
};

// Registers hold elements in order.
struct Fp16 final : PartByWhole<Fp16> {
  static constexpr std::int64_t kSize = 2;
  static constexpr bool kStreams = true;
  struct Raw final {
    __m128i r[8];
  };

  static Raw get(const std::byte* from) noexcept {
    const auto* halves = reinterpret_cast<const __m128i*>(from);
    Raw result;
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      result.r[k] = _mm_loadu_si128(halves + k);
    }
    return result;
  }
  static void put(std::byte* to, const Raw& raw) noexcept {
    auto* halves = reinterpret_cast<__m128i*>(to);
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      _mm_storeu_si128(halves + k, raw.r[k]);
    }
  }
  static void stream(std::byte* to, const Raw& raw) noexcept {
    auto* halves = reinterpret_cast<__m128i*>(to);
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      _mm_stream_si128(halves + k, raw.r[k]);
    }
  }
  static Block widen(const Raw& raw) noexcept {
    Block result;
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      result.r[k] = _mm256_cvtph_ps(raw.r[k]);
    }
    return result;
  }
  static Block arrange(const Block& block) noexcept { return block; }
  static Raw narrow(const Block& block) noexcept {
    return narrow_numbers(canonical(block));
  }
  static Raw narrow_numbers(const Block& block) noexcept {
    Raw result;
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      result.r[k] = _mm256_cvtps_ph(block.r[k], _MM_FROUND_TO_NEAREST_INT);
    }
    return result;
  }
  static float sum(const Block& block) noexcept { return Fp32::sum(block); }
};

// Register 2j of a block holds the even elements of the j-th sixteen, 2j + 1
// the odd ones: a shift and a mask take them apart, where keeping the order
// would cost a shuffle for each register.
struct Bf16 final : PartByWhole<Bf16> {
  static constexpr std::int64_t kSize = 2;
  static constexpr bool kStreams = true;
  struct Raw final {
    __m256i r[4];
  };

  static Raw get(const std::byte* from) noexcept {
    const auto* pairs = reinterpret_cast<const __m256i*>(from);
    Raw result;
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < 4; ++j) {
      result.r[j] = _mm256_loadu_si256(pairs + j);
    }
    return result;
  }
  static void put(std::byte* to, const Raw& raw) noexcept {
    auto* pairs = reinterpret_cast<__m256i*>(to);
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < 4; ++j) {
      _mm256_storeu_si256(pairs + j, raw.r[j]);
    }
  }
  static void stream(std::byte* to, const Raw& raw) noexcept {
    auto* pairs = reinterpret_cast<__m256i*>(to);
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < 4; ++j) {
      _mm256_stream_si256(pairs + j, raw.r[j]);
    }
  }
  static Block widen(const Raw& raw) noexcept {
    const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000U));
    Block result;
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < 4; ++j) {
      result.r[2 * j] = _mm256_castsi256_ps(_mm256_slli_epi32(raw.r[j], 16));
      result.r[2 * j + 1] =
          _mm256_castsi256_ps(_mm256_and_si256(raw.r[j], upper));
    }
    return result;
  }
  static Block arrange(const Block& block) noexcept {
    const __m256i order = _mm256_set_epi32(7, 6, 3, 2, 5, 4, 1, 0);
    Block result;
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < 4; ++j) {
      const __m256 low = block.r[2 * j];
      const __m256 high = block.r[2 * j + 1];
      result.r[2 * j] = _mm256_permutevar8x32_ps(
          _mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)), order);
      result.r[2 * j + 1] = _mm256_permutevar8x32_ps(
          _mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)), order);
    }
    return result;
  }
  static Raw narrow(const Block& block) noexcept {
    return narrow_numbers(canonical(block));
  }
  // half.h's rounding, which infinities and the canonical NaN pass unharmed.
  static Raw narrow_numbers(const Block& block) noexcept {
    Raw result;
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < 4; ++j) {
      const __m256i even = _mm256_srli_epi32(rounded(block.r[2 * j]), 16);
      result.r[j] = _mm256_blend_epi16(even, rounded(block.r[2 * j + 1]), 0xaa);
    }
    return result;
  }
  // Even and odd elements meet in the tree's last step only.
  static float sum(const Block& b) noexcept {
    const __m256 even = _mm256_add_ps(_mm256_add_ps(b.r[0], b.r[4]),
                                      _mm256_add_ps(b.r[2], b.r[6]));
    const __m256 odd = _mm256_add_ps(_mm256_add_ps(b.r[1], b.r[5]),
                                     _mm256_add_ps(b.r[3], b.r[7]));
    return sum_eight(even) + sum_eight(odd);
  }

 private:
  // In the upper halves; the lower ones are left over.
  static __m256i rounded(__m256 value) noexcept {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(bits,
                            _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  }
};

inline void drain() noexcept { _mm_sfence(); }

}  // namespace
}  // namespace xllm_kernel::simd

XLLM_KERNEL_TARGET_END
