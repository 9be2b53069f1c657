// The RMS norms against hand-made rows and against double arithmetic.
#include "operators/rms_norm.h"

#include <cmath>

#include "device_tensor.h"

namespace ascend_sim::test {
namespace {

TEST(RmsNorm, a_row_worked_out_by_hand) {
  // mean([3, 4]^2) = 12.5, 1 / sqrt(12.5) = 0.282843
  const Floats x(DType::kFloat32, {1, 2}, {3, 4});
  const Floats gamma(DType::kFloat32, {2}, {1, 2});
  const Floats y(DType::kFloat32, {1, 2}, {0, 0});
  const Floats rstd(DType::kFloat32, {1, 1}, {0});
  run(rms_norm({x.view(), gamma.view(), 0.0, y.view(), rstd.view()}).task);
  EXPECT_NEAR(rstd.values()[0], 0.2828427, 1e-7);
  EXPECT_NEAR(y.values()[0], 0.8485281, 1e-6);
  EXPECT_NEAR(y.values()[1], 2.2627417, 1e-6);
}

TEST(RmsNorm, epsilon_is_added_to_the_mean) {
  // mean = 1, so epsilon 3 gives 1 / sqrt(4).
  const Floats x(DType::kFloat32, {2}, {1, -1});
  const Floats gamma(DType::kFloat32, {2}, {1, 1});
  const Floats y(DType::kFloat32, {2}, {0, 0});
  const Floats rstd(DType::kFloat32, {1}, {0});
  run(rms_norm({x.view(), gamma.view(), 3.0, y.view(), rstd.view()}).task);
  EXPECT_EQ(y.values(), (std::vector<float>{0.5F, -0.5F}));
}

TEST(RmsNorm, strided_rows_of_bfloat16_are_rounded_once) {
  constexpr std::int64_t kRows = 3;
  constexpr std::int64_t kWidth = 200;
  constexpr std::int64_t kStride = 211;
  std::vector<float> values(kRows * kStride);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i)) * 3;
  }
  std::vector<float> weights(kWidth);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = 1 + std::cos(static_cast<float>(i)) / 2;
  }
  const Halves x(DType::kBfloat16, {kRows * kStride}, bfloat16s(values));
  const Halves gamma(DType::kBfloat16, {kWidth}, bfloat16s(weights));
  const Halves y(DType::kBfloat16, {kRows, kWidth},
                 std::vector<std::uint16_t>(kRows * kWidth));
  const Floats rstd(DType::kFloat32, {kRows, 1}, {0, 0, 0});
  run(rms_norm({x.view({kRows, kWidth}, {kStride, 1}), gamma.view(), 1e-5,
                y.view(), rstd.view()})
          .task);
  const auto results = y.values();
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto at = [&](std::int64_t k) {
      return double{from_bfloat16(
          x.values()[static_cast<std::size_t>(row * kStride + k)])};
    };
    double squares = 0;
    for (std::int64_t k = 0; k < kWidth; ++k) squares += at(k) * at(k);
    const double expected_rstd = 1 / std::sqrt(squares / kWidth + 1e-5);
    EXPECT_NEAR(rstd.values()[static_cast<std::size_t>(row)] / expected_rstd, 1,
                1e-6);
    for (std::int64_t k = 0; k < kWidth; ++k) {
      const double exact =
          at(k) * expected_rstd *
          from_bfloat16(gamma.values()[static_cast<std::size_t>(k)]);
      const float got =
          from_bfloat16(results[static_cast<std::size_t>(row * kWidth + k)]);
      // Half a place of 8 significant bits is at most 2^-8 of the value; and a
      // little for float32's own roundings.
      EXPECT_NEAR(got, exact, std::fabs(exact) * (0x1p-8 + 1e-6)) << k;
    }
  }
}

TEST(RmsNorm, gamma_may_span_several_dimensions) {
  const Floats x(DType::kFloat32, {2, 2, 2}, {1, 1, 1, 1, 2, 2, 2, 2});
  const Floats gamma(DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  const Floats y(DType::kFloat32, {2, 2, 2}, std::vector<float>(8));
  const Floats rstd(DType::kFloat32, {2, 1, 1}, {0, 0});
  run(rms_norm({x.view(), gamma.view(), 0.0, y.view(), rstd.view()}).task);
  EXPECT_EQ(y.values(), (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(rstd.values(), (std::vector<float>{1, 0.5F}));
}

TEST(RmsNorm, no_rows_are_no_work) {
  const Floats x(DType::kFloat32, {0, 2}, {});
  const Floats gamma(DType::kFloat32, {2}, {1, 1});
  const Floats y(DType::kFloat32, {0, 2}, {});
  const Floats rstd(DType::kFloat32, {0, 1}, {});
  run(rms_norm({x.view(), gamma.view(), 0.0, y.view(), rstd.view()}).task);
}

TEST(RmsNorm, operands_outside_of_the_domain_are_refused) {
  const Halves x(DType::kBfloat16, {1, 2}, {0, 0});
  const Halves half_gamma(DType::kFloat16, {2}, {0, 0});
  const Halves long_gamma(DType::kBfloat16, {1, 3}, {0, 0, 0});
  const Halves gamma(DType::kBfloat16, {2}, {0, 0});
  const Halves y(DType::kBfloat16, {1, 2}, {0, 0});
  const Floats rstd(DType::kFloat32, {1, 1}, {0});
  const Longs integers(DType::kInt64, {1, 2}, {0, 0});
  const auto refused = [&](const Tensor& input, const Tensor& weight,
                           const Tensor& output) {
    return refusal(
        [&] { return rms_norm({input, weight, 1e-6, output, rstd.view()}); });
  };
  EXPECT_EQ(refused(x.view(), half_gamma.view(), y.view()),
            "aclnnRmsNorm: gamma must be bfloat16 or float32, got float16");
  EXPECT_EQ(
      refused(x.view(), long_gamma.view(), y.view()),
      "aclnnRmsNorm: gamma's sizes must be the last ones of x [1, 2], got "
      "[1, 3]");
  EXPECT_EQ(refused(integers.view(), gamma.view(), y.view()),
            "aclnnRmsNorm: x must be one of float32, float16, bfloat16, got "
            "int64");
  EXPECT_EQ(refused(x.view(), gamma.view(), gamma.view()),
            "aclnnRmsNorm: y's sizes must be [1, 2], got [2]");
}

TEST(AddRmsNorm, the_sum_is_rounded_before_it_is_normalised) {
  // 256 + 1 lies midway between bfloat16's 256 and 258 and becomes 256.
  const Halves x1(DType::kBfloat16, {1, 2}, bfloat16s({256, 0}));
  const Halves x2(DType::kBfloat16, {1, 2}, bfloat16s({1, 1}));
  const Halves gamma(DType::kBfloat16, {2}, bfloat16s({1, 1}));
  const Halves y(DType::kBfloat16, {1, 2}, {0, 0});
  const Halves x(DType::kBfloat16, {1, 2}, {0, 0});
  const Floats rstd(DType::kFloat32, {1, 1}, {0});
  run(add_rms_norm({x1.view(), x2.view(), gamma.view(), 0.0, y.view(),
                    rstd.view(), x.view()})
          .task);
  EXPECT_EQ(x.values(), bfloat16s({256, 1}));
  // Of 257 it would be 0.0055027.
  EXPECT_NEAR(rstd.values()[0], 1 / std::sqrt((65536.0 + 1) / 2), 1e-9);
}

TEST(AddRmsNorm, empty_operands_are_refused) {
  const Floats x(DType::kFloat32, {0, 2}, {});
  const Floats gamma(DType::kFloat32, {2}, {1, 1});
  const Floats rstd(DType::kFloat32, {0, 1}, {});
  EXPECT_EQ(refusal([&] {
              return add_rms_norm({x.view(), x.view(), gamma.view(), 0.0,
                                   x.view(), rstd.view(), x.view()});
            }),
            "aclnnAddRmsNorm: x1 must not be empty, got [0, 2]");
}

}  // namespace
}  // namespace ascend_sim::test
