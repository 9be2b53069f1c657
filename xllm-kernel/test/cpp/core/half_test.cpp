// The scalar conversions against the formats' definition, over every pattern.
#include "simd/core/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cstdint>

#include "support/formats.h"

namespace xllm_kernel::test {
namespace {

using simd::bf16_to_fp32;
using simd::fp16_to_fp32;
using simd::fp32_to_bf16;
using simd::fp32_to_fp16;

// Low halves around the rounding points of both formats.
constexpr std::uint32_t kLowHalves[] = {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001,
                                        0x1fff, 0x2000, 0x3000, 0x7fff, 0x8000,
                                        0x8001, 0xefff, 0xf000, 0xffff};

template <class Widen>
void expect_exact_widening(const Format& format, Widen widen) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float wide = widen(static_cast<std::uint16_t>(bits));
    const double exact = format.decode(bits);
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(wide)) << std::hex << bits;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(static_cast<double>(wide)),
                std::bit_cast<std::uint64_t>(exact))
          << std::hex << bits;
    }
  }
}

template <class Narrow>
void expect_nearest_even(const Format& format, Narrow narrow) {
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : kLowHalves) {
      const std::uint32_t bits = high << 16 | low;
      ASSERT_EQ(narrow(std::bit_cast<float>(bits)),
                format.encode(kFp32.decode(bits)))
          << format.name << " from " << std::hex << bits;
    }
  }
}

TEST(Half, test_fp16_to_fp32_every_pattern_exact) {
  expect_exact_widening(kFp16, fp16_to_fp32);
}

TEST(Half, test_bf16_to_fp32_every_pattern_exact) {
  expect_exact_widening(kBf16, bf16_to_fp32);
}

TEST(Half, test_fp32_to_fp16_every_high_half_nearest_even) {
  expect_nearest_even(kFp16, fp32_to_fp16);
}

TEST(Half, test_fp32_to_bf16_every_high_half_nearest_even) {
  expect_nearest_even(kBf16, fp32_to_bf16);
}

TEST(Half, test_round_trip_every_pattern_same_bits) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const bool fp16_nan = (bits & 0x7fffU) > 0x7c00U;
    EXPECT_EQ(fp32_to_fp16(fp16_to_fp32(half)), fp16_nan ? 0x7e00U : bits);
    const bool bf16_nan = (bits & 0x7fffU) > 0x7f80U;
    EXPECT_EQ(fp32_to_bf16(bf16_to_fp32(half)), bf16_nan ? 0x7fc0U : bits);
  }
}

// Values that once went wrong elsewhere, by hand.
TEST(Half, test_fp32_to_bf16_known_traps_by_rule) {
  const auto narrow = [](std::uint32_t bits) {
    return fp32_to_bf16(std::bit_cast<float>(bits));
  };
  EXPECT_EQ(narrow(0x7f800001), 0x7fc0);  // a NaN, not infinity
  EXPECT_EQ(narrow(0x7fffffff), 0x7fc0);
  EXPECT_EQ(narrow(0xff800001), 0x7fc0);  // sign and payload dropped
  EXPECT_EQ(narrow(0x3f808000), 0x3f80);  // ties to even, down
  EXPECT_EQ(narrow(0x3f818000), 0x3f82);  // ties to even, up
  EXPECT_EQ(narrow(0x7f7fffff), 0x7f80);  // the largest finite rounds up
  EXPECT_EQ(narrow(0x00010000), 0x0001);  // subnormals stay
  EXPECT_EQ(narrow(0x80000000), 0x8000);  // so does the sign of zero
}

TEST(Half, test_conversions_leave_floating_point_flags_alone) {
  std::feclearexcept(FE_ALL_EXCEPT);
  const volatile auto tiny = std::bit_cast<float>(1U);
  EXPECT_EQ(fp32_to_fp16(tiny), 0);
  EXPECT_EQ(std::fetestexcept(FE_UNDERFLOW | FE_OVERFLOW | FE_INVALID), 0);
}

}  // namespace
}  // namespace xllm_kernel::test
