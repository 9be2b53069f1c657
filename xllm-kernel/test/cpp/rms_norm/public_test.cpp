// The public rms_norm: what it refuses, what it writes, rows spread over
// threads, offsets past 2^31. Run by ctest once for each forced level.
#include <gtest/gtest.h>

#include <cfloat>
#include <cstdlib>
#include <limits>
#include <vector>

#include "rms_norm/support.h"
#include "support/far_memory.h"
#include "support/threads.h"

namespace xllm_kernel::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class PublicRmsNorm : public testing::Test {
 protected:
  void SetUp() override {
    if (simd_level().status == Status::kUnavailableLevel) {
      GTEST_SKIP() << "this machine has no level "
                   << std::getenv("XLLM_KERNEL_SIMD_LEVEL");
    }
    ASSERT_EQ(simd_level().status, Status::kOk) << simd_level().message;
  }
};

Status call(Tensor& output, const Tensor& input, const Tensor& weight,
            double eps = 1e-6) {
  return rms_norm(output.mutable_view(), input.view(), weight.view(), eps);
}

TEST_F(PublicRmsNorm, test_call_every_pair_of_dtypes_bits_of_every_level) {
  for (const simd::RmsNormVariant& variant : simd::rms_norm_variants()) {
    if (!machine_has(variant.level)) continue;
    const Format& format = format_of(variant.dtype);
    const Tensor input = random_tensor(format, {5, 201}, 1);
    const Tensor weight = random_tensor(format_of(variant.weight), {201}, 2);
    Tensor output(format, {5, 201});
    ASSERT_EQ(call(output, input, weight), Status::kOk);
    expect_close(output, input, weight, 1e-6);
    Tensor expected(format, {5, 201});
    run_kernel(variant, expected, input, weight, 1e-6);
    expect_same_bits(output, expected);
  }
}

TEST_F(PublicRmsNorm, test_call_outside_domain_named_and_nothing_written) {
  const Tensor input = random_tensor(kFp16, {3, 8}, 1);
  const Tensor weight = random_tensor(kFp16, {8}, 1);
  Tensor output(kFp16, {3, 8});
  const std::vector<std::byte> before = output.snapshot();
  const auto refused = [&](const Tensor& x, const Tensor& w, double eps) {
    return call(output, x, w, eps);
  };

  EXPECT_EQ(refused(input, random_tensor(kFp16, {2, 4}, 1), 1e-6),
            Status::kWeightRank);
  EXPECT_EQ(refused(input, random_tensor(kBf16, {8}, 1), 1e-6),
            Status::kWeightDType);
  EXPECT_EQ(refused(random_tensor(kFp32, {3, 8}, 1), weight, 1e-6),
            Status::kWeightDType);
  EXPECT_EQ(refused(input, random_tensor(kFp16, {9}, 1), 1e-6),
            Status::kWeightWidth);
  EXPECT_EQ(refused(input, random_tensor(kFp16, {1}, 1), 1e-6),
            Status::kWeightWidth);
  EXPECT_EQ(refused(Tensor(kFp16, {3, 8}, {1, 3}), weight, 1e-6),
            Status::kInputStride);
  EXPECT_EQ(refused(Tensor(kFp16, {3, 8}, {1, 0}), weight, 1e-6),
            Status::kInputStride);
  EXPECT_EQ(refused(input, Tensor(kFp16, {8}, {2}), 1e-6),
            Status::kWeightStride);
  EXPECT_EQ(refused(input, Tensor(kFp16, {8}, {0}), 1e-6),
            Status::kWeightStride);
  for (const double eps : {-1e-6, -DBL_MIN, kNan, kInfinity, -kInfinity,
                           1.0000001 * FLT_MAX, DBL_MAX}) {
    EXPECT_EQ(refused(input, weight, eps), Status::kEps) << eps;
  }
  EXPECT_EQ(output.snapshot(), before);
}

TEST_F(PublicRmsNorm, test_call_rank_zero_refused) {
  float value = 1.0F;
  TensorView point;
  ASSERT_EQ(TensorView::make(&value, {}, {}, DType::kFloat32, &point),
            Status::kOk);
  Tensor output(kFp32, {1});
  const Tensor weight(kFp32, {1});
  EXPECT_EQ(rms_norm(output.mutable_view(), point, weight.view(), 1e-6),
            Status::kInputRank);
}

TEST_F(PublicRmsNorm, test_call_width_zero_refused) {
  Tensor output(kFp32, {3, 0});
  EXPECT_EQ(call(output, Tensor(kFp32, {3, 0}), Tensor(kFp32, {0})),
            Status::kInputWidth);
}

TEST_F(PublicRmsNorm, test_call_no_rows_ok) {
  for (const Extents& extents :
       {Extents{0, 8}, Extents{3, 0, 8}, Extents{0, 0, 8}}) {
    Tensor output(kFp32, extents);
    EXPECT_EQ(call(output, Tensor(kFp32, extents), Tensor(kFp32, {8})),
              Status::kOk);
  }
}

TEST_F(PublicRmsNorm, test_call_eps_edges_ok) {
  const Tensor input = random_tensor(kFp32, {1, 8}, 1);
  const Tensor weight = random_tensor(kFp32, {8}, 1);
  Tensor output(kFp32, {1, 8});
  for (const double eps : {0.0, -0.0, 1e-60, double{FLT_MAX}}) {
    EXPECT_EQ(call(output, input, weight, eps), Status::kOk) << eps;
  }
}

TEST_F(PublicRmsNorm, test_call_width_one_stride_free) {
  Tensor input(kFp32, {3, 1}, {2, 7});
  input.fill([](auto row, auto) { return static_cast<double>(row) - 1.0; });
  Tensor weight(kFp32, {1}, {5});
  weight.fill([](auto, auto) { return 2.0; });
  Tensor output(kFp32, {3, 1});
  ASSERT_EQ(call(output, input, weight), Status::kOk);
  expect_close(output, input, weight, 1e-6);
}

TEST_F(PublicRmsNorm, test_call_output_unlike_input_refused) {
  const Tensor input = random_tensor(kFp16, {3, 8}, 1);
  const Tensor weight = random_tensor(kFp16, {8}, 1);
  const auto into = [&](Tensor output) { return call(output, input, weight); };
  EXPECT_EQ(into(Tensor(kFp16, {3, 9})), Status::kOutputShape);
  EXPECT_EQ(into(Tensor(kFp16, {2, 8})), Status::kOutputShape);
  EXPECT_EQ(into(Tensor(kFp16, {24})), Status::kOutputShape);
  EXPECT_EQ(into(Tensor(kFp32, {3, 8})), Status::kOutputDType);
  EXPECT_EQ(into(Tensor(kFp16, {3, 8}, {1, 3})), Status::kOutputStride);
  EXPECT_EQ(into(Tensor(kFp16, {3, 8}, {0, 1})), Status::kOutputStride);
  EXPECT_EQ(into(Tensor(kFp16, {3, 8}, {7, 1})), Status::kOutputStride);
}

TEST_F(PublicRmsNorm, test_call_output_meets_operand_refused) {
  Tensor memory = random_tensor(kFp32, {6, 8}, 1);
  const Tensor input = random_tensor(kFp32, {3, 8}, 1);
  const Tensor weight = random_tensor(kFp32, {8}, 1);
  const std::vector<std::byte> before = memory.snapshot();
  const Extents extents = {3, 8};
  const Extents strides = {8, 1};
  const Extents width = {8};
  const Extents one = {1};
  const auto output_at = [&](std::int64_t offset) {
    MutableTensorView view;
    EXPECT_EQ(MutableTensorView::make(memory.memory().data() + offset, extents,
                                      strides, DType::kFloat32, &view),
              Status::kOk);
    return view;
  };
  TensorView first_rows;
  ASSERT_EQ(TensorView::make(memory.memory().data(), extents, strides,
                             DType::kFloat32, &first_rows),
            Status::kOk);
  TensorView first_row;
  ASSERT_EQ(TensorView::make(memory.memory().data(), width, one,
                             DType::kFloat32, &first_row),
            Status::kOk);
  EXPECT_EQ(rms_norm(output_at(0), first_rows, weight.view(), 1e-6),
            Status::kOutputOverlap);
  EXPECT_EQ(rms_norm(output_at(92), first_rows, weight.view(), 1e-6),
            Status::kOutputOverlap);
  EXPECT_EQ(rms_norm(output_at(28), input.view(), first_row, 1e-6),
            Status::kOutputOverlap);
  EXPECT_EQ(memory.snapshot(), before);
  EXPECT_EQ(rms_norm(output_at(96), first_rows, weight.view(), 1e-6),
            Status::kOk);
}

// Large enough for the cost model to want three threads.
TEST_F(PublicRmsNorm, test_threads_of_every_kind_same_bits_as_one) {
  const Extents extents = {41, 9, 1200};
  const Tensor input = random_tensor(kBf16, extents, 1);
  const Tensor weight = random_tensor(kBf16, {1200}, 2);
  Tensor whole(kBf16, extents);
  ASSERT_EQ(call(whole, input, weight), Status::kOk);
  for (const Threads& threads : every_kind_of_threads()) {
    Tensor spread(kBf16, extents);
    EXPECT_EQ(rms_norm(spread.mutable_view(), input.view(), weight.view(), 1e-6,
                       threads),
              Status::kOk);
    expect_same_bits(whole, spread);
  }
}

// Callers of every kind of threads share pools, input and weight.
TEST_F(PublicRmsNorm, test_callers_on_many_threads_at_once_same_bits) {
  const Extents extents = {150, 1200};
  const Tensor input = random_tensor(kBf16, extents, 1);
  const Tensor weight = random_tensor(kBf16, {1200}, 2);
  Tensor alone(kBf16, extents);
  ASSERT_EQ(call(alone, input, weight), Status::kOk);
  const std::vector<Threads> kinds = every_kind_of_threads();
  at_once(6, [&](int n) {
    for (std::size_t turn = 0; turn < kinds.size(); ++turn) {
      const std::size_t kind = (turn + static_cast<std::size_t>(n)) % 7;
      Tensor output(kBf16, extents);
      EXPECT_EQ(rms_norm(output.mutable_view(), input.view(), weight.view(),
                         1e-6, kinds[kind]),
                Status::kOk);
      expect_same_bits(alone, output);
    }
  });
}

TEST_F(PublicRmsNorm, test_weight_fp32_same_bits_as_widened) {
  const Tensor input = random_tensor(kBf16, {3, 200}, 1);
  const Tensor weight = random_tensor(kBf16, {200}, 2);
  const Tensor wide =
      filled(kFp32, {200}, [&](auto, auto i) { return weight.get(0, i); });
  Tensor output(kBf16, {3, 200});
  Tensor expected(kBf16, {3, 200});
  ASSERT_EQ(call(output, input, wide), Status::kOk);
  ASSERT_EQ(call(expected, input, weight), Status::kOk);
  expect_same_bits(output, expected);
}

TEST_F(PublicRmsNorm, test_negative_row_stride_flipped_rows) {
  const Tensor input = random_tensor(kFp32, {5, 40}, 1);
  const Tensor weight = random_tensor(kFp32, {40}, 2);
  Tensor straight(kFp32, {5, 40});
  Tensor flipped(kFp32, {5, 40});
  ASSERT_EQ(call(straight, input, weight), Status::kOk);
  const Extents extents = {5, 40};
  const Extents strides = {-40, 1};
  TensorView view;
  ASSERT_EQ(TensorView::make(
                input.memory().data() + std::size_t{4} * 40 * sizeof(float),
                extents, strides, DType::kFloat32, &view),
            Status::kOk);
  ASSERT_EQ(rms_norm(flipped.mutable_view(), view, weight.view(), 1e-6),
            Status::kOk);
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::int64_t i = 0; i < 40; ++i) {
      ASSERT_EQ(flipped.bits(row, i), straight.bits(4 - row, i));
    }
  }
}

TEST_F(PublicRmsNorm, test_rows_past_two_to_the_31_apart_right_rows) {
  constexpr std::int64_t kStride = (1LL << 31) + 17;
  const Tensor dense = random_tensor(kFp16, {2, 97}, 1);
  const Tensor weight = random_tensor(kFp16, {97}, 2);
  Tensor expected(kFp16, {2, 97});
  ASSERT_EQ(call(expected, dense, weight), Status::kOk);
  for (const std::int64_t stride : {kStride, -kStride}) {
    const FarRows input(kFp16, 97, stride, &dense);
    const FarRows output(kFp16, 97, -stride);
    if (!input.reserved() || !output.reserved()) GTEST_SKIP() << kNoReserve;
    ASSERT_EQ(rms_norm(output.view<MutableTensorView>(),
                       input.view<TensorView>(), weight.view(), 1e-6),
              Status::kOk);
    expect_same_bits(output.rows(), expected);
  }
}

// Zeros but for the first and the last 64 places, of which the last lie past
// 2^31; the mean counts them all.
TEST_F(PublicRmsNorm, test_width_past_two_to_the_31_right_tail) {
  if (!far_memory_pays(simd_level().name)) GTEST_SKIP() << kTooSlow;
  const WideRow input;
  const WideRow weight;
  const WideRow output(WideRow::Use::kOutput);
  if (!input.reserved() || !weight.reserved() || !output.reserved()) {
    GTEST_SKIP() << kNoReserve;
  }
  const Tensor ends = random_tensor(kFp16, {2, 64}, 1);
  const Tensor factors = random_tensor(kFp16, {2, 64}, 2);
  input.set_ends(ends);
  weight.set_ends(factors);
  ASSERT_EQ(rms_norm(output.view<MutableTensorView>(), input.view<TensorView>(),
                     weight.view<TensorView>(), 0.0, Threads::own()),
            Status::kOk);
  expect_wide_tail(output, ends, factors);
}

// Run by ctest with a level that exists nowhere.
TEST(ForcedLevel, test_call_unknown_level_refused) {
  const char* forced = std::getenv("XLLM_KERNEL_SIMD_LEVEL");
  if (forced == nullptr || std::string(forced) != "doesnotexist") {
    GTEST_SKIP() << "needs XLLM_KERNEL_SIMD_LEVEL=doesnotexist, which ctest "
                    "sets for another run of this test";
  }
  const Tensor input = random_tensor(kFp32, {1, 8}, 1);
  const Tensor weight = random_tensor(kFp32, {8}, 1);
  Tensor output(kFp32, {1, 8});
  EXPECT_EQ(call(output, input, weight), Status::kUnknownLevel);
  EXPECT_TRUE(output.memory().intact());
}

}  // namespace
}  // namespace xllm_kernel::test
