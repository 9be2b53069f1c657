// The three dtypes by their definition, in fp64: what the library's conversions
// are checked against. Includes nothing of the library but its public header.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "xllm_kernel/core.h"

namespace xllm_kernel::test {

// A binary floating-point format.
struct Format {
  DType dtype;
  const char* name;
  int size;           // bytes
  int mantissa_bits;  // stored ones
  int exponent_bits;

  [[nodiscard]] int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  [[nodiscard]] int least_exponent() const { return 1 - bias(); }
  [[nodiscard]] double largest() const {
    return std::ldexp(2.0 - std::ldexp(1.0, -mantissa_bits), bias());
  }
  // Distance between neighbours at a magnitude.
  [[nodiscard]] double ulp(double value) const {
    int exponent = least_exponent();
    if (value != 0.0 && std::isfinite(value)) {
      exponent = std::max(exponent, std::ilogb(value));
    }
    return std::ldexp(1.0, exponent - mantissa_bits);
  }
  [[nodiscard]] std::uint32_t sign_bit() const {
    return 1U << (mantissa_bits + exponent_bits);
  }
  [[nodiscard]] std::uint32_t infinity() const {
    return ((1U << exponent_bits) - 1) << mantissa_bits;
  }
  // The one NaN that the library writes.
  [[nodiscard]] std::uint32_t nan() const {
    return infinity() | (1U << (mantissa_bits - 1));
  }

  [[nodiscard]] double decode(std::uint32_t bits) const {
    const double sign = (bits & sign_bit()) != 0 ? -1.0 : 1.0;
    const std::uint32_t magnitude = bits & (sign_bit() - 1);
    if (magnitude > infinity()) return std::numeric_limits<double>::quiet_NaN();
    if (magnitude == infinity()) {
      return sign * std::numeric_limits<double>::infinity();
    }
    const auto exponent = static_cast<int>(magnitude >> mantissa_bits);
    const double mantissa = magnitude & ((1U << mantissa_bits) - 1);
    if (exponent == 0) {
      return sign * std::ldexp(mantissa, least_exponent() - mantissa_bits);
    }
    return sign * std::ldexp(mantissa + std::ldexp(1.0, mantissa_bits),
                             exponent - bias() - mantissa_bits);
  }

  // To nearest even.
  [[nodiscard]] std::uint32_t encode(double value) const {
    if (std::isnan(value)) return nan();
    const std::uint32_t sign = std::signbit(value) ? sign_bit() : 0;
    const double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return sign | infinity();
    // Whole steps of the format; nearbyint rounds half to even.
    const double step = ulp(magnitude);
    const double rounded = std::nearbyint(magnitude / step) * step;
    if (rounded > largest()) return sign | infinity();
    if (rounded == 0.0) return sign;
    const int exponent = std::max(least_exponent(), std::ilogb(rounded));
    const auto whole = static_cast<std::uint32_t>(
        std::ldexp(rounded, mantissa_bits - exponent));
    if (whole < (1U << mantissa_bits)) return sign | whole;
    return sign |
           (static_cast<std::uint32_t>(exponent + bias()) << mantissa_bits) |
           (whole - (1U << mantissa_bits));
  }
};

inline constexpr Format kFp32{DType::kFloat32, "float32", 4, 23, 8};
inline constexpr Format kFp16{DType::kFloat16, "float16", 2, 10, 5};
inline constexpr Format kBf16{DType::kBFloat16, "bfloat16", 2, 7, 8};

inline const Format& format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return kFp16;
    case DType::kBFloat16:
      return kBf16;
    default:
      return kFp32;
  }
}

}  // namespace xllm_kernel::test
