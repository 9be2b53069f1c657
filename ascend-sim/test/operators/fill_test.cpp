// Ranges and random numbers: what is promised of them, not their values.
#include "operators/fill.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "device_tensor.h"

namespace ascend_sim::test {
namespace {

TEST(Arange, of_integers_and_of_fractions) {
  const Longs longs(DType::kInt64, {3}, {0, 0, 0});
  run(arange("test", {std::int64_t{5}, DType::kInt64},
             {std::int64_t{-2}, DType::kInt64}, longs.view()));
  EXPECT_EQ(longs.values(), (std::vector<std::int64_t>{5, 3, 1}));
  const Floats floats(DType::kFloat32, {3}, {0, 0, 0});
  run(arange("test", {0.5, DType::kFloat64}, {0.25, DType::kFloat64},
             floats.view()));
  EXPECT_EQ(floats.values(), (std::vector<float>{0.5F, 0.75F, 1}));
}

std::vector<float> drawn(const RandomSource& source) {
  const Floats out(DType::kFloat32, {1000}, std::vector<float>(1000));
  run(uniform("test", -1, 3, source, out.view()));
  return out.values();
}

TEST(Random, one_source_gives_the_same_numbers_and_another_gives_others) {
  EXPECT_EQ(drawn({1, 0, {}, {}}), drawn({1, 0, {}, {}}));
  EXPECT_NE(drawn({1, 0, {}, {}}), drawn({2, 0, {}, {}}));
  EXPECT_NE(drawn({1, 0, {}, {}}), drawn({1, 4, {}, {}}));
}

TEST(Random, counters_in_device_memory_count_like_numbers) {
  const Longs seed(DType::kInt64, {1}, {1});
  const Longs offset(DType::kInt64, {1}, {3});
  EXPECT_EQ(drawn({0, 1, seed.view(), offset.view()}), drawn({1, 4, {}, {}}));
}

TEST(Random, uniform_numbers_lie_in_their_range_with_its_mean) {
  const auto values = drawn({7, 0, {}, {}});
  for (const float value : values) {
    EXPECT_GE(value, -1);
    EXPECT_LT(value, 3);
  }
  // The mean of 1000 has the deviation 4 / sqrt(12 * 1000) = 0.0365: five of
  // them.
  EXPECT_NEAR(std::accumulate(values.begin(), values.end(), 0.0) / 1000, 1,
              0.19);
}

TEST(Random, normal_numbers_have_their_mean_and_deviation) {
  const Floats out(DType::kFloat32, {4000}, std::vector<float>(4000));
  run(normal("test", 2, 3, {1, 0, {}, {}}, out.view()));
  double sum = 0;
  double squares = 0;
  for (const float value : out.values()) {
    sum += value;
    squares += double{value} * value;
  }
  const double mean = sum / 4000;
  // Deviations of the estimates: 3 / sqrt(4000) = 0.047 and 3 / sqrt(8000) =
  // 0.034: five of them.
  EXPECT_NEAR(mean, 2, 0.24);
  EXPECT_NEAR(std::sqrt(squares / 4000 - mean * mean), 3, 0.17);
}

TEST(Random, integers_reach_both_ends_of_their_range) {
  const Longs out(DType::kInt64, {200}, std::vector<std::int64_t>(200));
  run(random_integers("test", -1, 2, {1, 0, {}, {}}, out.view()));
  const auto values = out.values();
  const auto [least, most] = std::ranges::minmax(values);
  EXPECT_EQ(least, -1);
  EXPECT_EQ(most, 1);
  EXPECT_EQ(
      refusal([&] { return random_integers("test", 2, 2, {}, out.view()); }),
      "test: from must be below to, got 2 and 2");
}

}  // namespace
}  // namespace ascend_sim::test
