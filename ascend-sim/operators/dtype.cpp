// See dtype.h.
#include "operators/dtype.h"

#include <array>
#include <bit>
#include <cmath>

namespace ascend_sim {
namespace {

struct Facts {
  DType dtype;
  std::size_t bytes;
  const char* name;
  bool floating;
};

constexpr std::array kAll = {
    Facts{DType::kFloat32, 4, "float32", true},
    Facts{DType::kFloat16, 2, "float16", true},
    Facts{DType::kInt8, 1, "int8", false},
    Facts{DType::kInt32, 4, "int32", false},
    Facts{DType::kUint8, 1, "uint8", false},
    Facts{DType::kInt16, 2, "int16", false},
    Facts{DType::kInt64, 8, "int64", false},
    Facts{DType::kFloat64, 8, "float64", true},
    Facts{DType::kBool, 1, "bool", false},
    Facts{DType::kBfloat16, 2, "bfloat16", true},
};

const Facts* find(DType dtype) {
  for (const Facts& facts : kAll) {
    if (facts.dtype == dtype) return &facts;
  }
  return nullptr;
}

}  // namespace

bool is_simulated(DType dtype) { return find(dtype) != nullptr; }

std::size_t size_of(DType dtype) {
  const Facts* facts = find(dtype);
  return facts == nullptr ? 0 : facts->bytes;
}

std::string name_of(DType dtype) {
  const Facts* facts = find(dtype);
  if (facts != nullptr) return facts->name;
  return "data type " + std::to_string(static_cast<std::int32_t>(dtype));
}

bool is_floating(DType dtype) {
  const Facts* facts = find(dtype);
  return facts != nullptr && facts->floating;
}

DType bits_of(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return DType::kInt8;
    case 2:
      return DType::kInt16;
    case 4:
      return DType::kInt32;
    default:
      return DType::kInt64;
  }
}

std::uint16_t bfloat16_from(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  }
  // Half of the last place that stays, less one where that place is even.
  const std::uint32_t half = 0x7fffU + ((bits >> 16U) & 1U);
  return static_cast<std::uint16_t>((bits + half) >> 16U);
}

float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

std::uint16_t float16_from(float value) {
  const auto sign = static_cast<std::uint16_t>(
      (std::bit_cast<std::uint32_t>(value) >> 16U) & 0x8000U);
  if (std::isnan(value)) return sign | 0x7e00U;
  const float magnitude = std::fabs(value);
  // Halfway between the largest finite number and the next power of two.
  if (magnitude >= 65520.0F) return sign | 0x7c00U;
  if (magnitude < 0x1p-14F) {
    // Below the normal numbers the places are multiples of 2^-24; the product
    // is exact.
    const float places = std::nearbyint(magnitude * 0x1p24F);
    return static_cast<std::uint16_t>(sign |
                                      static_cast<std::uint16_t>(places));
  }
  const auto bits = std::bit_cast<std::uint32_t>(magnitude);
  const std::uint32_t rounded = bits + 0xfffU + ((bits >> 13U) & 1U);
  constexpr std::uint32_t kBiasDifference = 127 - 15;
  return static_cast<std::uint16_t>(
      sign | ((rounded - (kBiasDifference << 23U)) >> 13U));
}

float from_float16(std::uint16_t bits) {
  const std::uint32_t exponent = (bits >> 10U) & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 0x1fU ? 0xffU : exponent + (127 - 15);
  return std::bit_cast<float>(sign | (wide << 23U) | (fraction << 13U));
}

}  // namespace ascend_sim
