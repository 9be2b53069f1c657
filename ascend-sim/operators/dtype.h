// The element types of simulated tensors, and how they round. Knows no tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ascend_sim {

// Values as in CANN's aclDataType. One that is not listed is not simulated.
enum class DType : std::int32_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kInt8 = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 6,
  kInt64 = 9,
  kFloat64 = 11,
  kBool = 12,
  kBfloat16 = 27,
};

[[nodiscard]] bool is_simulated(DType dtype);
// In bytes; 0 for one that is not simulated.
[[nodiscard]] std::size_t size_of(DType dtype);
[[nodiscard]] std::string name_of(DType dtype);
[[nodiscard]] bool is_floating(DType dtype);
// The integer type of the same size: copies that must keep every bit use it.
[[nodiscard]] DType bits_of(DType dtype);

// To nearest, ties to even; beyond the largest finite number, infinity; a NaN
// stays one.
[[nodiscard]] std::uint16_t bfloat16_from(float value);
[[nodiscard]] std::uint16_t float16_from(float value);
// Exact.
[[nodiscard]] float from_bfloat16(std::uint16_t bits);
[[nodiscard]] float from_float16(std::uint16_t bits);

}  // namespace ascend_sim
