// Reductions and whole-tensor comparisons against results worked out by hand.
#include "operators/reduce.h"

#include <cmath>
#include <limits>

#include "device_tensor.h"
#include "operators/compare.h"

namespace ascend_sim::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Reduce, over_a_dimension_that_is_not_the_last) {
  const Floats in(DType::kFloat32, {2, 3}, {1, 2, 3, 10, 20, 30});
  const Floats out(DType::kFloat32, {1, 3}, {0, 0, 0});
  run(reduce("test", Reduction::kSum, in.view(), {0}, out.view()));
  EXPECT_EQ(out.values(), (std::vector<float>{11, 22, 33}));
  run(reduce("test", Reduction::kMean, in.view(), {-2}, out.view()));
  EXPECT_EQ(out.values(), (std::vector<float>{5.5F, 11, 16.5F}));
}

TEST(Reduce, without_dimensions_takes_all) {
  const Floats in(DType::kFloat32, {2, 2}, {1, kNan, 3, 4});
  const Floats out(DType::kFloat32, {}, {0});
  run(reduce("test", Reduction::kMax, in.view(), {}, out.view()));
  EXPECT_TRUE(std::isnan(out.values()[0]));
}

TEST(Reduce, sums_float32_in_64_lanes_that_are_added_pairwise) {
  // 2^24 and 64 ones, one in each lane. Beside 2^24 a 1 is lost: the one of its
  // own lane, and the next lane's. The other 62 meet it as 2, 4, 8, 16 and 32.
  std::vector<float> values(128, 0.0F);
  values[0] = 0x1p24F;
  for (std::size_t i = 64; i < values.size(); ++i) values[i] = 1;
  const Floats in(DType::kFloat32, flat(values.size()), values);
  const Floats out(DType::kFloat32, {}, {0});
  run(reduce("test", Reduction::kSum, in.view(), {}, out.view()));
  EXPECT_EQ(out.values()[0], 0x1p24F + 62);
}

TEST(Reduce, of_nothing_gives_the_neutral_element_or_is_refused) {
  const Floats in(DType::kFloat32, {0}, {});
  const Floats out(DType::kFloat32, {}, {9});
  run(reduce("test", Reduction::kSum, in.view(), {}, out.view()));
  EXPECT_EQ(out.values()[0], 0);
  run(reduce("test", Reduction::kAll, in.view(), {}, out.view()));
  EXPECT_EQ(out.values()[0], 1);
  EXPECT_EQ(refusal([&] {
              return reduce("test", Reduction::kMax, in.view(), {}, out.view());
            }),
            "test: self must not be empty");
}

TEST(Reduce, all_and_any_take_a_nan_for_true) {
  const Floats in(DType::kFloat32, {2, 2}, {kNan, 1, 0, 0});
  const Bools out(DType::kBool, {2}, {9, 9});
  run(reduce("test", Reduction::kAll, in.view(), {1}, out.view()));
  EXPECT_EQ(out.values(), (std::vector<std::uint8_t>{1, 0}));
}

TEST(ReduceToExtreme, gives_the_first_of_equals_and_a_nan_before_all) {
  const Floats in(DType::kFloat32, {2, 3}, {5, 7, 7, 1, kNan, 9});
  const Floats values(DType::kFloat32, {2}, {0, 0});
  const Longs indices(DType::kInt64, {2}, {9, 9});
  run(reduce_to_extreme("test", Reduction::kMax, in.view(), 1,
                        {&values.view(), &indices.view()}));
  EXPECT_EQ(indices.values(), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(values.values()[0], 7);
  EXPECT_TRUE(std::isnan(values.values()[1]));
  run(reduce_to_extreme("test", Reduction::kMin, in.view(), -1,
                        {nullptr, &indices.view()}));
  EXPECT_EQ(indices.values(), (std::vector<std::int64_t>{0, 1}));
}

TEST(Equal, needs_the_same_sizes_and_values) {
  const Floats a(DType::kFloat32, {2}, {1, 2});
  const Floats b(DType::kFloat32, {2}, {1, 2.5F});
  const Floats nan(DType::kFloat32, {2}, {1, kNan});
  const Bools out(DType::kBool, {}, {9});
  const auto same = [&](const Tensor& one, const Tensor& other) {
    run(equal("test", one, other, out.view()));
    return out.values()[0];
  };
  EXPECT_EQ(same(a.view(), a.view()), 1);
  EXPECT_EQ(same(a.view(), b.view()), 0);
  EXPECT_EQ(same(nan.view(), nan.view()), 0);
  EXPECT_EQ(same(a.view(), a.view({2, 1}, {1, 1})), 0);
}

TEST(IsClose, counts_the_tolerance_from_the_other_operand) {
  const Floats self(DType::kFloat32, {4}, {100, 110, kNan, INFINITY});
  const Floats other(DType::kFloat32, {4}, {110, 100, kNan, INFINITY});
  const Bools out(DType::kBool, {4}, {9, 9, 9, 9});
  run(is_close("test", self.view(), other.view(), {0.095, 0, false},
               out.view()));
  EXPECT_EQ(out.values(), (std::vector<std::uint8_t>{1, 0, 0, 1}));
  run(is_close("test", self.view(), other.view(), {0.095, 0.6, true},
               out.view()));
  EXPECT_EQ(out.values(), (std::vector<std::uint8_t>{1, 1, 1, 1}));
}

}  // namespace
}  // namespace ascend_sim::test
