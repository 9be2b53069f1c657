// The values of 16-bit floats from the definition of their formats.
// Shares nothing with the conversions under test, and rounds nothing.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "operators/dtype.h"

namespace ascend_sim::testing {

inline double value_of(std::uint32_t bits, int exponent_bits,
                       int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto fraction = static_cast<int>(bits & ((1U << fraction_bits) - 1U));
  const auto exponent =
      static_cast<int>((bits >> fraction_bits) & ((1U << exponent_bits) - 1U));
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction == 0 ? sign * HUGE_VAL
                         : std::numeric_limits<double>::quiet_NaN();
  }
  const int hidden = exponent == 0 ? 0 : 1 << fraction_bits;
  const int power = (exponent == 0 ? 1 : exponent) - bias - fraction_bits;
  return sign * std::ldexp(hidden + fraction, power);
}

struct Bfloat16 {
  std::uint16_t bits = 0;
  static std::uint16_t narrow(float value) { return bfloat16_from(value); }
  static float widen(std::uint16_t bits) { return from_bfloat16(bits); }
};
struct Float16 {
  std::uint16_t bits = 0;
  static std::uint16_t narrow(float value) { return float16_from(value); }
  static float widen(std::uint16_t bits) { return from_float16(bits); }
};

inline double value_of(Bfloat16 narrow) { return value_of(narrow.bits, 8, 7); }
inline double value_of(Float16 narrow) { return value_of(narrow.bits, 5, 10); }

// Half a unit in the last place, relative to the value, in the worst case.
template <typename Narrow>
inline constexpr double kHalfUlp = 0;
template <>
inline constexpr double kHalfUlp<Bfloat16> = 1.0 / (1 << 8);
template <>
inline constexpr double kHalfUlp<Float16> = 1.0 / (1 << 11);

}  // namespace ascend_sim::testing
