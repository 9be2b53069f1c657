// Conversions between fp32 and the two 16-bit formats, by integers: exact one
// way, to nearest even the other, subnormals kept, every NaN to the canonical
// one. They define what the vector paths must give; none is vectorised here.
#pragma once

#include <bit>
#include <cstdint>

namespace xllm_kernel::simd {

inline constexpr std::uint32_t kFp32Nan = 0x7fc00000U;
inline constexpr std::uint16_t kFp16Nan = 0x7e00U;
inline constexpr std::uint16_t kBf16Nan = 0x7fc0U;

[[nodiscard]] constexpr float canonical_fp32(float value) noexcept {
  return value != value ? std::bit_cast<float>(kFp32Nan) : value;
}

[[nodiscard]] constexpr float fp16_to_fp32(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fU;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0x1f) {
    const std::uint32_t bits = mantissa == 0 ? sign | 0x7f800000U : kFp32Nan;
    return std::bit_cast<float>(bits);
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                                (mantissa << 13));
  }
  if (mantissa == 0) return std::bit_cast<float>(sign);
  // mantissa * 2^-24, made normal: fp32 has the exponents to spare.
  const int top = 31 - std::countl_zero(mantissa);
  const auto shift = static_cast<std::uint32_t>(10 - top);
  return std::bit_cast<float>(sign | ((113 - shift) << 23) |
                              (((mantissa << shift) & 0x3ffU) << 13));
}

[[nodiscard]] constexpr std::uint16_t fp32_to_fp16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return kFp16Nan;
  // 65520, half way past the largest finite value, and all above.
  if (magnitude >= 0x477ff000U) {
    return static_cast<std::uint16_t>(sign | 0x7c00U);
  }
  if (magnitude >= 0x38800000U) {
    const std::uint32_t rounded =
        magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U;
    return static_cast<std::uint16_t>(sign | (rounded >> 13));
  }
  // Below 2^-25 everything is nearer to 0 than to the least subnormal, 2^-24.
  if (magnitude < 0x33000000U) return static_cast<std::uint16_t>(sign);
  const std::uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
  const std::uint32_t shift = 126 - (magnitude >> 23);
  const std::uint32_t rest = significand & ((1U << shift) - 1);
  const std::uint32_t half = 1U << (shift - 1);
  std::uint32_t quotient = significand >> shift;
  if (rest > half || (rest == half && (quotient & 1U) != 0)) ++quotient;
  return static_cast<std::uint16_t>(sign | quotient);
}

[[nodiscard]] constexpr float bf16_to_fp32(std::uint16_t half) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

[[nodiscard]] constexpr std::uint16_t fp32_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return kBf16Nan;
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >>
                                    16);
}

}  // namespace xllm_kernel::simd
