// Roundings to the 16-bit types against values worked out by hand from their
// formats: bfloat16 has 8 significant bits, float16 has 11 and ends at 65504.
#include "operators/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace ascend_sim {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Bfloat16, rounds_to_nearest_with_ties_to_even) {
  EXPECT_EQ(bfloat16_from(1.0F), 0x3f80);
  EXPECT_EQ(bfloat16_from(1.0F + 0x1p-8F), 0x3f80);  // tie, 0x3f80 is even
  EXPECT_EQ(bfloat16_from(1.0F + 0x3p-8F), 0x3f82);  // tie, 0x3f81 is odd
  EXPECT_EQ(bfloat16_from(1.0F + 0x1.8p-8F), 0x3f81);
  EXPECT_EQ(bfloat16_from(-1.0F - 0x3p-8F), 0xbf82);
}

TEST(Bfloat16, keeps_zeros_infinities_and_nans) {
  EXPECT_EQ(bfloat16_from(-0.0F), 0x8000);
  EXPECT_EQ(bfloat16_from(kInfinity), 0x7f80);
  EXPECT_EQ(bfloat16_from(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(from_bfloat16(bfloat16_from(std::nanf("")))));
}

TEST(Float16, rounds_to_nearest_with_ties_to_even) {
  EXPECT_EQ(float16_from(1.0F), 0x3c00);
  EXPECT_EQ(float16_from(1.0F + 0x1p-11F), 0x3c00);
  EXPECT_EQ(float16_from(1.0F + 0x3p-11F), 0x3c02);
  EXPECT_EQ(float16_from(2.0F - 0x1p-12F), 0x4000);  // into the next power
}

TEST(Float16, ends_at_its_largest_number) {
  EXPECT_EQ(float16_from(65504.0F), 0x7bff);
  EXPECT_EQ(float16_from(std::nextafter(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(float16_from(65520.0F), 0x7c00);
  EXPECT_EQ(float16_from(-kInfinity), 0xfc00);
}

TEST(Float16,
     rounds_below_its_normal_numbers_to_multiples_of_2_to_the_minus_24) {
  EXPECT_EQ(float16_from(0x1p-24F), 0x0001);
  EXPECT_EQ(float16_from(0x1p-25F), 0x0000);       // tie, 0 is even
  EXPECT_EQ(float16_from(0x1.8p-24F), 0x0002);     // tie, 1 is odd
  EXPECT_EQ(float16_from(0x1.ff8p-15F), 0x03ff);   // 1023 of them
  EXPECT_EQ(float16_from(-0x1.ffcp-15F), 0x8400);  // tie, 1024 is even
}

TEST(Float16, every_number_comes_back) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = from_float16(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(from_float16(float16_from(value))));
    } else {
      EXPECT_EQ(float16_from(value), half);
    }
  }
}

TEST(DTypes, other_numbers_are_not_simulated) {
  const auto complex64 = static_cast<DType>(16);
  EXPECT_FALSE(is_simulated(complex64));
  EXPECT_EQ(size_of(complex64), 0U);
  EXPECT_EQ(name_of(complex64), "data type 16");
}

}  // namespace
}  // namespace ascend_sim
