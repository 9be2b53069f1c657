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

inline __m256 canonical(__m256 value) noexcept {
  const __m256 nan =
      _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(kFp32Nan)));
  return _mm256_blendv_ps(value, nan,
                          _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
}

// Values 0 .. 15 of the tree, as two registers in the order of the elements.
inline float sum_sixteen(__m256 low, __m256 high) noexcept {
  const __m256 eight = _mm256_add_ps(low, high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// A part goes by way of a whole block: it is one in a row.
template <class Format>
Block load_by_whole(const std::byte* from, std::int64_t count) noexcept {
  alignas(32) std::byte whole[kLanes * Format::kSize] = {};
  std::memcpy(whole, from, static_cast<std::size_t>(count * Format::kSize));
  return Format::load(whole);
}

template <class Format>
void store_by_whole(std::byte* to, const Block& block,
                    std::int64_t count) noexcept {
  alignas(32) std::byte whole[kLanes * Format::kSize];
  Format::store(whole, block);
  std::memcpy(to, whole, static_cast<std::size_t>(count * Format::kSize));
}

// Registers hold elements in order.
struct Fp32 final {
  static constexpr std::int64_t kSize = 4;

  static Block load(const std::byte* from) noexcept {
    const auto* values = reinterpret_cast<const float*>(from);
    Block result;
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      result.r[k] = _mm256_loadu_ps(values + 8 * k);
    }
    return result;
  }
  static void store(std::byte* to, const Block& block) noexcept {
    auto* values = reinterpret_cast<float*>(to);
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      _mm256_storeu_ps(values + 8 * k, canonical(block.r[k]));
    }
  }
  static Block load_part(const std::byte* from, std::int64_t count) noexcept {
    return load_by_whole<Fp32>(from, count);
  }
  static void store_part(std::byte* to, const Block& block,
                         std::int64_t count) noexcept {
    store_by_whole<Fp32>(to, block, count);
  }
  static float sum(const Block& b) noexcept {
    const __m256 s0 = _mm256_add_ps(b.r[0], b.r[4]);
    const __m256 s1 = _mm256_add_ps(b.r[1], b.r[5]);
    const __m256 s2 = _mm256_add_ps(b.r[2], b.r[6]);
    const __m256 s3 = _mm256_add_ps(b.r[3], b.r[7]);
    return sum_sixteen(_mm256_add_ps(s0, s2), _mm256_add_ps(s1, s3));
  }
};

// Registers hold elements in order.
struct Fp16 final {
  static constexpr std::int64_t kSize = 2;

  static Block load(const std::byte* from) noexcept {
    const auto* halves = reinterpret_cast<const __m128i*>(from);
    Block result;
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      result.r[k] = _mm256_cvtph_ps(_mm_loadu_si128(halves + k));
    }
    return result;
  }
  static void store(std::byte* to, const Block& block) noexcept {
    auto* halves = reinterpret_cast<__m128i*>(to);
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      _mm_storeu_si128(halves + k, _mm256_cvtps_ph(canonical(block.r[k]),
                                                   _MM_FROUND_TO_NEAREST_INT));
    }
  }
  static Block load_part(const std::byte* from, std::int64_t count) noexcept {
    return load_by_whole<Fp16>(from, count);
  }
  static void store_part(std::byte* to, const Block& block,
                         std::int64_t count) noexcept {
    store_by_whole<Fp16>(to, block, count);
  }
  static float sum(const Block& block) noexcept { return Fp32::sum(block); }
};

// Register 2j holds the even elements of the j-th sixteen, 2j + 1 the odd ones:
// a shift and a mask take them apart, where keeping the order would cost a
// shuffle for each register.
struct Bf16 final {
  static constexpr std::int64_t kSize = 2;

  static Block load(const std::byte* from) noexcept {
    const auto* pairs = reinterpret_cast<const __m256i*>(from);
    const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000U));
    Block result;
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < 4; ++j) {
      const __m256i both = _mm256_loadu_si256(pairs + j);
      result.r[2 * j] = _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
      result.r[2 * j + 1] = _mm256_castsi256_ps(_mm256_and_si256(both, upper));
    }
    return result;
  }
  static void store(std::byte* to, const Block& block) noexcept {
    auto* pairs = reinterpret_cast<__m256i*>(to);
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < 4; ++j) {
      const __m256i even = rounded(block.r[2 * j]);
      const __m256i odd = rounded(block.r[2 * j + 1]);
      _mm256_storeu_si256(
          pairs + j,
          _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa));
    }
  }
  static Block load_part(const std::byte* from, std::int64_t count) noexcept {
    return load_by_whole<Bf16>(from, count);
  }
  static void store_part(std::byte* to, const Block& block,
                         std::int64_t count) noexcept {
    store_by_whole<Bf16>(to, block, count);
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
  // half.h's rounding in the upper halves; the lower ones are left over.
  static __m256i rounded(__m256 value) noexcept {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(
        bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256 nan =
        _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(kFp32Nan)));
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(up), nan,
                         _mm256_cmp_ps(value, value, _CMP_UNORD_Q)));
  }
  static float sum_eight(__m256 eight) noexcept {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                   _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
};

}  // namespace
}  // namespace xllm_kernel::simd

XLLM_KERNEL_TARGET_END
