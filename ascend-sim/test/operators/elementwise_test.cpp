// Elementwise operators against results worked out by hand.
#include "operators/elementwise.h"

#include <cmath>
#include <limits>

#include "device_tensor.h"

namespace ascend_sim::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Scalar number(double value) { return {value, DType::kFloat64}; }
Scalar integer(std::int64_t value) { return {value, DType::kInt64}; }

std::vector<float> apply(std::string_view function,
                         const std::vector<float>& self, double other) {
  const Floats in(DType::kFloat32, flat(self.size()), self);
  const Floats out(DType::kFloat32, flat(self.size()), self);
  run(elementwise("test", function, {in.view(), number(other)}, out.view()));
  return out.values();
}

TEST(Copy, moves_a_strided_view_into_another) {
  const Floats from(DType::kFloat32, {6}, {0, 1, 2, 3, 4, 5});
  const Floats to(DType::kFloat32, {8}, std::vector<float>(8, -1));
  // Columns of a 2 by 3 matrix into every other place of the rows of a 2 by 4.
  run(copy("test", from.view({2, 2}, {3, 1}, 1), to.view({2, 2}, {4, 2})));
  EXPECT_EQ(to.values(), (std::vector<float>{1, -1, 2, -1, 4, -1, 5, -1}));
}

TEST(Copy, keeps_every_bit_of_one_dtype) {
  constexpr std::uint16_t kOtherNan = 0xfc01;  // no rounding gives this one
  const Halves from(DType::kFloat16, {1}, {kOtherNan});
  const Halves to(DType::kFloat16, {1}, {0});
  run(copy("test", from.view(), to.view()));
  EXPECT_EQ(to.values()[0], kOtherNan);
}

TEST(Copy, floating_point_to_integers_saturates_and_cuts_off) {
  const Floats from(DType::kFloat32, {6},
                    {1.9F, -1.9F, 3e9F, -kInfinity, kNan, 2147483648.0F});
  const DeviceTensor<std::int32_t> to(DType::kInt32, {6},
                                      std::vector<std::int32_t>(6));
  run(copy("test", from.view(), to.view()));
  EXPECT_EQ(to.values(), (std::vector<std::int32_t>{1, -1, INT32_MAX, INT32_MIN,
                                                    0, INT32_MAX}));
}

TEST(Copy, integers_wrap_and_what_is_not_0_is_true) {
  const Longs from(DType::kInt64, {3}, {0, 256, (std::int64_t{1} << 32) + 7});
  const DeviceTensor<std::int32_t> ints(DType::kInt32, {3}, {9, 9, 9});
  const Bools bools(DType::kBool, {3}, {9, 9, 9});
  run(copy("test", from.view(), ints.view()));
  run(copy("test", from.view(), bools.view()));
  EXPECT_EQ(ints.values(), (std::vector<std::int32_t>{0, 256, 7}));
  EXPECT_EQ(bools.values(), (std::vector<std::uint8_t>{0, 1, 1}));
}

TEST(Elementwise, sums_of_16_bit_numbers_round_once) {
  // (1 - 2^-7) * (1 + 2^-7) = 1 - 2^-14, so the sum lies just below 259, the
  // middle between the bfloat16 numbers 258 and 260. A product that was rounded
  // to 1 on the way would give the middle itself, which goes to the even 260.
  const Halves a(DType::kBfloat16, {1}, bfloat16s({258}));
  const Halves b(DType::kBfloat16, {1}, bfloat16s({1 + 0x1p-7F}));
  const Halves out(DType::kBfloat16, {1}, {0});
  run(elementwise("test", "Add", {a.view(), b.view(), number(1 - 0x1p-7)},
                  out.view()));
  EXPECT_EQ(out.values(), bfloat16s({258}));
}

TEST(Elementwise, operands_broadcast) {
  const Floats column(DType::kFloat32, {2, 1}, {10, 20});
  const Floats row(DType::kFloat32, {3}, {1, 2, 3});
  const Floats out(DType::kFloat32, {2, 3}, std::vector<float>(6));
  run(elementwise("test", "Add", {column.view(), row.view(), integer(1)},
                  out.view()));
  EXPECT_EQ(out.values(), (std::vector<float>{11, 12, 13, 21, 22, 23}));
}

TEST(Elementwise, more_elements_than_a_block_are_all_computed) {
  std::vector<float> values(5000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
  }
  const auto results = apply("Mul", values, 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(results[i], 2 * values[i]);
  }
}

TEST(Elementwise, a_nan_equals_nothing_and_wins_a_maximum) {
  EXPECT_EQ(apply("Eq", {kNan, 1}, 1), (std::vector<float>{0, 1}));
  EXPECT_EQ(apply("Ne", {kNan, 1}, 1), (std::vector<float>{1, 0}));
  EXPECT_TRUE(std::isnan(apply("Maximum", {kNan}, 1)[0]));
  EXPECT_TRUE(std::isnan(apply("Minimum", {1}, kNan)[0]));
}

TEST(Elementwise, quotients_of_integers_go_down_and_remainders_have_the_sign) {
  const Longs in(DType::kInt64, {4}, {7, -7, 7, -7});
  const Longs by(DType::kInt64, {4}, {2, 2, -2, -2});
  const Longs out(DType::kInt64, {4}, {0, 0, 0, 0});
  run(elementwise("test", "FloorDivide", {in.view(), by.view()}, out.view()));
  EXPECT_EQ(out.values(), (std::vector<std::int64_t>{3, -4, -4, 3}));
  run(elementwise("test", "Remainder", {in.view(), by.view()}, out.view()));
  EXPECT_EQ(out.values(), (std::vector<std::int64_t>{1, 1, -1, -1}));
}

TEST(Elementwise, int64_keeps_what_floating_point_would_lose) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  const Longs in(DType::kInt64, {1}, {large});
  const Longs out(DType::kInt64, {1}, {0});
  run(elementwise("test", "Add", {in.view(), integer(2), integer(1)},
                  out.view()));
  EXPECT_EQ(out.values()[0], large + 2);
}

TEST(Elementwise, a_filled_tensor_is_not_read) {
  const Floats out(DType::kFloat32, {2}, {1, 2});
  const Task task = elementwise("test", "Identity", {number(3)}, out.view());
  ASSERT_EQ(task.accesses.size(), 1U);
  EXPECT_EQ(task.accesses[0].kind, AccessKind::kWrite);
  run(task);
  EXPECT_EQ(out.values(), (std::vector<float>{3, 3}));
}

TEST(Elementwise, bitwise_not_of_a_bool_is_not) {
  const Bools in(DType::kBool, {2}, {0, 1});
  const Bools out(DType::kBool, {2}, {7, 7});
  run(bitwise_not("test", in.view(), out.view()));
  EXPECT_EQ(out.values(), (std::vector<std::uint8_t>{1, 0}));
}

TEST(Elementwise, operands_that_do_not_fit_are_refused) {
  const Floats a(DType::kFloat32, {2}, {1, 2});
  const Floats b(DType::kFloat32, {3}, {1, 2, 3});
  EXPECT_EQ(refusal([&] {
              return elementwise("test", "Mul", {a.view(), b.view()}, a.view());
            }),
            "test: operands' sizes must broadcast, got [2] and [3]");
  EXPECT_EQ(refusal([&] {
              return elementwise("test", "Mul", {a.view(), a.view()}, b.view());
            }),
            "test: operands' sizes must broadcast, got [2] and [3]");
  EXPECT_EQ(refusal([&] {
              return elementwise("test", "Nonsense", {a.view()}, a.view());
            }),
            "test: no function Nonsense is simulated");
}

TEST(Elementwise, a_dtype_that_is_not_simulated_is_refused) {
  const Floats a(DType::kFloat32, {2}, {1, 2});
  Tensor complex = a.view();
  complex.dtype = static_cast<DType>(16);
  EXPECT_EQ(refusal([&] { return copy("test", complex, a.view()); }),
            "test: data type 16 is not simulated");
}

}  // namespace
}  // namespace ascend_sim::test
