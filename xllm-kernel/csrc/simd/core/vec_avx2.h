// Eight fp32 values in a register, and how each dtype gets there and back.
// Included by AVX2 kernel files only; holds no operator.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "simd/core/half.h"
#include "simd/core/target.h"

XLLM_KERNEL_TARGET_AVX2_BEGIN

namespace xllm_kernel::simd {
// Internal linkage on purpose: see target.h.
namespace {  // NOLINT(google-build-namespaces)

inline constexpr std::int64_t kVec = 8;

inline __m256 canonical(__m256 value) noexcept {
  const __m256 nan =
      _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(kFp32Nan)));
  return _mm256_blendv_ps(value, nan,
                          _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
}

// Each format loads and stores kVec elements at any element-aligned address, or
// the first 1 .. kVec - 1 of them without touching a byte beyond; the missing
// ones read as +0.
struct Fp32 final {
  static constexpr std::int64_t kSize = 4;

  static __m256 load(const std::byte* from) noexcept {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  }
  static void store(std::byte* to, __m256 value) noexcept {
    _mm256_storeu_ps(reinterpret_cast<float*>(to), canonical(value));
  }
  static __m256 load_part(const std::byte* from, std::int64_t count) noexcept {
    return _mm256_maskload_ps(reinterpret_cast<const float*>(from),
                              mask(count));
  }
  static void store_part(std::byte* to, __m256 value,
                         std::int64_t count) noexcept {
    _mm256_maskstore_ps(reinterpret_cast<float*>(to), mask(count),
                        canonical(value));
  }

 private:
  static __m256i mask(std::int64_t count) noexcept {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

struct Fp16Codec final {
  static __m256 widen(__m128i half) noexcept { return _mm256_cvtph_ps(half); }
  static __m128i narrow(__m256 value) noexcept {
    return _mm256_cvtps_ph(canonical(value), _MM_FROUND_TO_NEAREST_INT);
  }
};

struct Bf16Codec final {
  static __m256 widen(__m128i half) noexcept {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
  // half.h's rounding on eight lanes at once.
  static __m128i narrow(__m256 value) noexcept {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(bits,
                         _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))),
        16);
    const __m256i nan =
        _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i chosen =
        _mm256_blendv_epi8(rounded, _mm256_set1_epi32(kBf16Nan), nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(chosen),
                            _mm256_extracti128_si256(chosen, 1));
  }
};

template <class Codec>
struct Half final {
  static constexpr std::int64_t kSize = 2;

  static __m256 load(const std::byte* from) noexcept {
    return Codec::widen(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static void store(std::byte* to, __m256 value) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), Codec::narrow(value));
  }
  static __m256 load_part(const std::byte* from, std::int64_t count) noexcept {
    alignas(16) std::uint16_t whole[kVec] = {};
    std::memcpy(whole, from, static_cast<std::size_t>(count * kSize));
    return Codec::widen(
        _mm_load_si128(reinterpret_cast<const __m128i*>(whole)));
  }
  static void store_part(std::byte* to, __m256 value,
                         std::int64_t count) noexcept {
    alignas(16) std::uint16_t whole[kVec];
    _mm_store_si128(reinterpret_cast<__m128i*>(whole), Codec::narrow(value));
    std::memcpy(to, whole, static_cast<std::size_t>(count * kSize));
  }
};

using Fp16 = Half<Fp16Codec>;
using Bf16 = Half<Bf16Codec>;

}  // namespace
}  // namespace xllm_kernel::simd

XLLM_KERNEL_TARGET_END
