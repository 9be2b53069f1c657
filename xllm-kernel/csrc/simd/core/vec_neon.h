// Blocks in sixteen registers of four. Every 64-bit Arm processor has what this
// uses, so there is no target region; holds no operator.
#pragma once

#include <arm_neon.h>

#include "simd/core/block.h"
#include "simd/core/half.h"

namespace xllm_kernel::simd {
namespace {  // NOLINT(google-build-namespaces)

struct Block final {
  float32x4_t r[16];
};

inline Block zero() noexcept {
  Block result;
#pragma GCC unroll 16
  for (auto& r : result.r) r = vdupq_n_f32(0.0F);
  return result;
}

inline Block fma(const Block& a, const Block& b, const Block& c) noexcept {
  Block result;
#pragma GCC unroll 16
  for (std::int64_t k = 0; k < 16; ++k) {
    result.r[k] = vfmaq_f32(c.r[k], a.r[k], b.r[k]);
  }
  return result;
}

inline Block mul(const Block& a, const Block& b) noexcept {
  Block result;
#pragma GCC unroll 16
  for (std::int64_t k = 0; k < 16; ++k) {
    result.r[k] = vmulq_f32(a.r[k], b.r[k]);
  }
  return result;
}

inline Block mul(const Block& a, float b) noexcept {
  Block result;
#pragma GCC unroll 16
  for (std::int64_t k = 0; k < 16; ++k) {
    result.r[k] = vmulq_n_f32(a.r[k], b);
  }
  return result;
}

inline Block add(const Block& a, const Block& b) noexcept {
  Block result;
#pragma GCC unroll 16
  for (std::int64_t k = 0; k < 16; ++k) {
    result.r[k] = vaddq_f32(a.r[k], b.r[k]);
  }
  return result;
}

inline float32x4_t canonical(float32x4_t value) noexcept {
  const float32x4_t nan = vreinterpretq_f32_u32(vdupq_n_u32(kFp32Nan));
  return vbslq_f32(vceqq_f32(value, value), value, nan);
}

// Registers hold elements in order, in every format. Codec loads, stores,
// widens and narrows eight elements at a time.
template <class Codec>
struct Format final {
  static constexpr std::int64_t kSize = Codec::kSize;
  static constexpr bool kStreams = false;
  struct Raw final {
    typename Codec::Eight r[8];
  };

  static Raw get(const std::byte* from) noexcept {
    Raw result;
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      result.r[k] = Codec::get(from + 8 * k * kSize);
    }
    return result;
  }
  static void put(std::byte* to, const Raw& raw) noexcept {
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      Codec::put(to + 8 * k * kSize, raw.r[k]);
    }
  }
  // A part goes by way of a whole block: it is one in a row.
  static Raw get_part(const std::byte* from, std::int64_t count) noexcept {
    alignas(16) std::byte whole[kLanes * kSize] = {};
    std::memcpy(whole, from, static_cast<std::size_t>(count * kSize));
    return get(whole);
  }
  static void put_part(std::byte* to, const Raw& raw,
                       std::int64_t count) noexcept {
    alignas(16) std::byte whole[kLanes * kSize];
    put(whole, raw);
    std::memcpy(to, whole, static_cast<std::size_t>(count * kSize));
  }
  static Block widen(const Raw& raw) noexcept {
    Block result;
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      const float32x4x2_t eight = Codec::widen(raw.r[k]);
      result.r[2 * k] = eight.val[0];
      result.r[2 * k + 1] = eight.val[1];
    }
    return result;
  }
  static Block arrange(const Block& block) noexcept { return block; }
  static Raw narrow(const Block& block) noexcept {
    Block numbers;
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < 16; ++k) {
      numbers.r[k] = canonical(block.r[k]);
    }
    return narrow_numbers(numbers);
  }
  static Raw narrow_numbers(const Block& block) noexcept {
    Raw result;
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      result.r[k] = Codec::narrow(block.r[2 * k], block.r[2 * k + 1]);
    }
    return result;
  }
  static float sum(Block b) noexcept {
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < 8; ++k) {
      b.r[k] = vaddq_f32(b.r[k], b.r[k + 8]);
    }
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < 4; ++k) {
      b.r[k] = vaddq_f32(b.r[k], b.r[k + 4]);
    }
    b.r[0] = vaddq_f32(b.r[0], b.r[2]);
    b.r[1] = vaddq_f32(b.r[1], b.r[3]);
    const float32x4_t four = vaddq_f32(b.r[0], b.r[1]);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
};

struct Fp32Codec final {
  static constexpr std::int64_t kSize = 4;
  using Eight = float32x4x2_t;
  static Eight get(const std::byte* from) noexcept {
    const auto* values = reinterpret_cast<const float*>(from);
    return {vld1q_f32(values), vld1q_f32(values + 4)};
  }
  static void put(std::byte* to, Eight eight) noexcept {
    auto* values = reinterpret_cast<float*>(to);
    vst1q_f32(values, eight.val[0]);
    vst1q_f32(values + 4, eight.val[1]);
  }
  static float32x4x2_t widen(Eight eight) noexcept { return eight; }
  static Eight narrow(float32x4_t a, float32x4_t b) noexcept { return {a, b}; }
};

// The memory of both 16-bit formats.
struct HalfCodec {
  static constexpr std::int64_t kSize = 2;
  using Eight = uint16x8_t;
  static Eight get(const std::byte* from) noexcept {
    return vld1q_u16(reinterpret_cast<const std::uint16_t*>(from));
  }
  static void put(std::byte* to, Eight eight) noexcept {
    vst1q_u16(reinterpret_cast<std::uint16_t*>(to), eight);
  }
};

struct Fp16Codec final : HalfCodec {
  static float32x4x2_t widen(Eight eight) noexcept {
    const float16x8_t half = vreinterpretq_f16_u16(eight);
    return {vcvt_f32_f16(vget_low_f16(half)), vcvt_high_f32_f16(half)};
  }
  static Eight narrow(float32x4_t a, float32x4_t b) noexcept {
    return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(a), b));
  }
};

struct Bf16Codec final : HalfCodec {
  static float32x4x2_t widen(Eight eight) noexcept {
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(eight), 16)),
            vreinterpretq_f32_u32(vshll_high_n_u16(eight, 16))};
  }
  static Eight narrow(float32x4_t a, float32x4_t b) noexcept {
    return vshrn_high_n_u32(vshrn_n_u32(rounded(a), 16), rounded(b), 16);
  }

 private:
  // half.h's rounding in the upper halves; the lower ones are left over.
  // Infinities and the canonical NaN pass unharmed.
  static uint32x4_t rounded(float32x4_t value) noexcept {
    const uint32x4_t bits = vreinterpretq_u32_f32(value);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    return vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  }
};

using Fp32 = Format<Fp32Codec>;
using Fp16 = Format<Fp16Codec>;
using Bf16 = Format<Bf16Codec>;

// No store here leaves the caches alone.
inline void drain() noexcept {}

}  // namespace
}  // namespace xllm_kernel::simd
