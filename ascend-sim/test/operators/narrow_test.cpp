// Every 16-bit float, and the middle between every two, against arithmetic in
// double. Tests no operator.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "test/narrow_reference.h"

namespace ascend_sim {
namespace {

using testing::Bfloat16;
using testing::Float16;
using testing::value_of;

template <typename Narrow>
class NarrowTest : public ::testing::Test {};
using NarrowTypes = ::testing::Types<Bfloat16, Float16>;
TYPED_TEST_SUITE(NarrowTest, NarrowTypes);

TYPED_TEST(NarrowTest, EveryValue_WidensExactlyAndComesBack) {
  for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
    const TypeParam value{static_cast<std::uint16_t>(bits)};
    const double want = value_of(value);
    TypeParam back;
    back.bits = TypeParam::narrow(TypeParam::widen(value.bits));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(TypeParam::widen(value.bits))) << bits;
      EXPECT_TRUE(std::isnan(value_of(back))) << bits;
    } else {
      EXPECT_EQ(TypeParam::widen(value.bits), want) << bits;
      EXPECT_EQ(back.bits, value.bits) << bits;
    }
  }
}

// Halfway between neighbours the even one wins; a hair beside it the nearer.
TYPED_TEST(NarrowTest, BetweenNeighbours_RoundsToNearestTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x7fffU; ++bits) {
    const TypeParam low{static_cast<std::uint16_t>(bits)};
    const TypeParam high{static_cast<std::uint16_t>(bits + 1)};
    if (!std::isfinite(value_of(low)) || !std::isfinite(value_of(high))) {
      continue;
    }
    const auto middle =
        static_cast<float>((value_of(low) + value_of(high)) / 2);
    for (const float sign : {1.0F, -1.0F}) {
      const std::uint16_t sign_bit = sign < 0 ? 0x8000U : 0U;
      TypeParam to;
      to.bits = TypeParam::narrow(sign * middle);
      EXPECT_EQ(to.bits, sign_bit | (bits % 2 == 0 ? bits : bits + 1)) << bits;
      to.bits = TypeParam::narrow(sign * std::nextafter(middle, 0.0F));
      EXPECT_EQ(to.bits, sign_bit | bits) << bits;
      to.bits = TypeParam::narrow(sign * std::nextafter(middle, HUGE_VALF));
      EXPECT_EQ(to.bits, sign_bit | (bits + 1)) << bits;
    }
  }
}

TEST(Narrow, BeyondTheLargestFloat16_IsInfinity) {
  Float16 to;
  to.bits = Float16::narrow(65519.99F);
  EXPECT_EQ(value_of(to), 65504);
  to.bits = Float16::narrow(65520.0F);
  EXPECT_EQ(value_of(to), HUGE_VAL);
  to.bits = Float16::narrow(-1e30F);
  EXPECT_EQ(value_of(to), -HUGE_VAL);
}

TEST(Narrow, NanWithFullPayload_StaysNan) {
  Bfloat16 to;
  to.bits = Bfloat16::narrow(std::bit_cast<float>(0x7fffffffU));
  EXPECT_TRUE(std::isnan(value_of(to)));
  to.bits = Bfloat16::narrow(std::bit_cast<float>(0x7f800001U));
  EXPECT_TRUE(std::isnan(value_of(to)));
}

}  // namespace
}  // namespace ascend_sim
