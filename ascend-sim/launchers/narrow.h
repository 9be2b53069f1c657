// Conversions between 32-bit and 16-bit floating point, as the device's vector
// unit makes them: to the nearest, ties to even. Computes nothing else.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ascend_sim {

// In memory; the device has no arithmetic in either that is used here.
struct Bfloat16 {
  std::uint16_t bits = 0;
};
struct Float16 {
  std::uint16_t bits = 0;
};

[[nodiscard]] inline float widen(Bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16U);
}

[[nodiscard]] inline float widen(Float16 value) {
  return static_cast<float>(std::bit_cast<_Float16>(value.bits));
}

inline void narrow(float value, Bfloat16& to) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    // Rounding up could carry a payload of ones into the sign.
    to.bits = static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
    return;
  }
  const std::uint32_t odd = (bits >> 16U) & 1U;
  to.bits = static_cast<std::uint16_t>((bits + 0x7fffU + odd) >> 16U);
}

// Beyond the largest finite number lies infinity: the device does not saturate
// unless a program asks for it.
inline void narrow(float value, Float16& to) {
  to.bits = std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}

}  // namespace ascend_sim
