// The public fused_add_rms_norm: what it refuses, which aliases it takes, rows
// spread over threads. Run by ctest once for each forced level.
#include <gtest/gtest.h>

#include <cfloat>
#include <cstdlib>
#include <limits>
#include <vector>

#include "fused_add_rms_norm/support.h"
#include "support/far_memory.h"
#include "support/threads.h"

namespace xllm_kernel::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class PublicFusedAddRmsNorm : public testing::Test {
 protected:
  void SetUp() override {
    if (simd_level().status == Status::kUnavailableLevel) {
      GTEST_SKIP() << "this machine has no level "
                   << std::getenv("XLLM_KERNEL_SIMD_LEVEL");
    }
    ASSERT_EQ(simd_level().status, Status::kOk) << simd_level().message;
  }
};

Status call(Tensor& output, Tensor& sum, const Tensor& input,
            const Tensor& residual, const Tensor& weight, double eps = 1e-6) {
  return fused_add_rms_norm(output.mutable_view(), sum.mutable_view(),
                            input.view(), residual.view(), weight.view(), eps);
}

TEST_F(PublicFusedAddRmsNorm, test_call_bits_of_a_sum_and_the_public_norm) {
  for (const Format& format : {kFp32, kFp16, kBf16}) {
    const Tensor input = random_tensor(format, {5, 201}, 1);
    const Tensor residual = random_tensor(format, {5, 201}, 2);
    const Tensor weight = random_tensor(format, {201}, 3);
    Tensor output(format, {5, 201});
    Tensor sum(format, {5, 201});
    Tensor norm(format, {5, 201});
    ASSERT_EQ(call(output, sum, input, residual, weight), Status::kOk);
    expect_same_bits(sum, defined_sum(input, residual));
    ASSERT_EQ(rms_norm(norm.mutable_view(), sum.view(), weight.view(), 1e-6),
              Status::kOk);
    expect_same_bits(output, norm);
  }
}

TEST_F(PublicFusedAddRmsNorm, test_call_outside_domain_named_nothing_written) {
  const Tensor input = random_tensor(kFp16, {3, 8}, 1);
  const Tensor residual = random_tensor(kFp16, {3, 8}, 1);
  const Tensor weight = random_tensor(kFp16, {8}, 1);
  Tensor output(kFp16, {3, 8});
  Tensor sum(kFp16, {3, 8});
  const std::vector<std::byte> before = output.snapshot();
  const auto with_residual = [&](const Tensor& other) {
    return call(output, sum, input, other, weight);
  };
  const auto into = [&](Tensor to, Tensor carried) {
    return call(to, carried, input, residual, weight);
  };
  const auto fresh = [] { return Tensor(kFp16, {3, 8}); };
  EXPECT_EQ(with_residual(Tensor(kFp16, {8})), Status::kResidualShape);
  EXPECT_EQ(with_residual(Tensor(kFp16, {2, 8})), Status::kResidualShape);
  EXPECT_EQ(with_residual(Tensor(kFp16, {3, 1})), Status::kResidualShape);
  EXPECT_EQ(with_residual(Tensor(kFp32, {3, 8})), Status::kResidualDType);
  EXPECT_EQ(with_residual(Tensor(kFp16, {3, 8}, {1, 3})),
            Status::kResidualStride);
  EXPECT_EQ(into(Tensor(kFp16, {3, 9}), fresh()), Status::kOutputShape);
  EXPECT_EQ(into(Tensor(kBf16, {3, 8}), fresh()), Status::kOutputDType);
  EXPECT_EQ(into(Tensor(kFp16, {3, 8}, {1, 3}), fresh()),
            Status::kOutputStride);
  EXPECT_EQ(into(Tensor(kFp16, {3, 8}, {0, 1}), fresh()),
            Status::kOutputStride);
  EXPECT_EQ(into(fresh(), Tensor(kFp16, {24})), Status::kSumShape);
  EXPECT_EQ(into(fresh(), Tensor(kBf16, {3, 8})), Status::kSumDType);
  EXPECT_EQ(into(fresh(), Tensor(kFp16, {3, 8}, {1, 3})), Status::kSumStride);
  EXPECT_EQ(into(fresh(), Tensor(kFp16, {3, 8}, {7, 1})), Status::kSumStride);
  EXPECT_EQ(call(output, sum, input, residual, Tensor(kFp16, {9})),
            Status::kWeightWidth);
  for (const double eps : {-1e-6, kNan, 1.0000001 * FLT_MAX}) {
    EXPECT_EQ(call(output, sum, input, residual, weight, eps), Status::kEps);
  }
  EXPECT_EQ(output.snapshot(), before);
  EXPECT_EQ(sum.snapshot(), before);
}

TEST_F(PublicFusedAddRmsNorm, test_call_no_rows_ok_width_zero_refused) {
  Tensor output(kFp32, {0, 8});
  Tensor sum(kFp32, {0, 8});
  EXPECT_EQ(call(output, sum, Tensor(kFp32, {0, 8}), Tensor(kFp32, {0, 8}),
                 Tensor(kFp32, {8})),
            Status::kOk);
  Tensor none(kFp32, {3, 0});
  Tensor nothing(kFp32, {3, 0});
  EXPECT_EQ(call(none, nothing, Tensor(kFp32, {3, 0}), Tensor(kFp32, {3, 0}),
                 Tensor(kFp32, {0})),
            Status::kInputWidth);
}

// Views of three rows of eight in one memory, by their first element.
class Memory final {
 public:
  Memory() : tensor_(random_tensor(kFp32, {40, 8}, 1)) {}

  [[nodiscard]] TensorView read(std::int64_t element) const {
    TensorView view;
    EXPECT_EQ(TensorView::make(at(element), extents_, strides_, DType::kFloat32,
                               &view),
              Status::kOk);
    return view;
  }
  [[nodiscard]] MutableTensorView write(std::int64_t element) {
    MutableTensorView view;
    EXPECT_EQ(MutableTensorView::make(at(element), extents_, strides_,
                                      DType::kFloat32, &view),
              Status::kOk);
    return view;
  }
  [[nodiscard]] TensorView weight(std::int64_t element) const {
    TensorView view;
    EXPECT_EQ(
        TensorView::make(at(element), width_, one_, DType::kFloat32, &view),
        Status::kOk);
    return view;
  }
  [[nodiscard]] std::vector<std::byte> snapshot() const {
    return tensor_.snapshot();
  }

 private:
  [[nodiscard]] std::byte* at(std::int64_t element) const {
    return tensor_.memory().data() + element * 4;
  }

  const Extents extents_ = {3, 8};
  const Extents strides_ = {8, 1};
  const Extents width_ = {8};
  const Extents one_ = {1};
  Tensor tensor_;
};

TEST_F(PublicFusedAddRmsNorm, test_call_aliases_exact_pairs_only) {
  Memory memory;
  constexpr std::int64_t kIn = 0;
  constexpr std::int64_t kRes = 24;
  constexpr std::int64_t kW = 48;
  constexpr std::int64_t kOut = 64;
  constexpr std::int64_t kSum = 96;
  const auto with = [&](std::int64_t output, std::int64_t sum,
                        std::int64_t input, std::int64_t residual,
                        std::int64_t weight) {
    return fused_add_rms_norm(memory.write(output), memory.write(sum),
                              memory.read(input), memory.read(residual),
                              memory.weight(weight), 1e-6);
  };
  const std::vector<std::byte> before = memory.snapshot();
  // Output with each other operand, whole or by a byte range's end.
  EXPECT_EQ(with(kIn + 8, kSum, kIn, kRes + 100, kW), Status::kOutputAlias);
  EXPECT_EQ(with(kIn + 1, kSum, kIn, kRes + 100, kW), Status::kOutputAlias);
  EXPECT_EQ(with(kRes, kSum, kIn, kRes, kW), Status::kOutputAlias);
  EXPECT_EQ(with(kRes + 23, kSum, kIn, kRes, kW + 120), Status::kOutputAlias);
  EXPECT_EQ(with(kSum, kSum, kIn, kRes, kW), Status::kOutputAlias);
  EXPECT_EQ(with(kSum + 23, kSum, kIn, kRes, kW), Status::kOutputAlias);
  EXPECT_EQ(with(kW, kSum, kIn, kRes, kW), Status::kOutputAlias);
  // All three the same: the output meets the residual.
  EXPECT_EQ(with(kIn, kSum, kIn, kIn, kW), Status::kOutputAlias);
  // Sum with each other operand.
  EXPECT_EQ(with(kOut, kRes + 8, kIn, kRes, kW + 120), Status::kSumAlias);
  EXPECT_EQ(with(kOut, kIn, kIn, kRes, kW), Status::kSumAlias);
  EXPECT_EQ(with(200, kW, kIn, kRes, kW), Status::kSumAlias);
  // The same base, but other strides, is another tensor.
  const Extents extents = {3, 8};
  const Extents wider = {9, 1};
  MutableTensorView view;
  ASSERT_EQ(MutableTensorView::make(memory.write(kIn).base(), extents, wider,
                                    DType::kFloat32, &view),
            Status::kOk);
  EXPECT_EQ(
      fused_add_rms_norm(view, memory.write(kSum), memory.read(kIn),
                         memory.read(kRes + 100), memory.weight(kW), 1e-6),
      Status::kOutputAlias);
  EXPECT_EQ(memory.snapshot(), before);

  EXPECT_EQ(with(kOut, kSum, kIn, kIn, kIn), Status::kOk);
  EXPECT_EQ(with(kIn, kSum, kIn, kRes, kW), Status::kOk);
  EXPECT_EQ(with(kOut, kRes, kIn, kRes, kW), Status::kOk);
  EXPECT_EQ(with(kIn, kRes, kIn, kRes, kW), Status::kOk);
}

// Large enough for the cost model to want three threads.
TEST_F(PublicFusedAddRmsNorm, test_threads_of_every_kind_in_place_same_bits) {
  const Extents extents = {41, 9, 600};
  const Tensor weight = random_tensor(kBf16, {600}, 3);
  Tensor whole = random_tensor(kBf16, extents, 1);
  Tensor whole_sum = random_tensor(kBf16, extents, 2);
  ASSERT_EQ(call(whole, whole_sum, whole, whole_sum, weight), Status::kOk);
  for (const Threads& threads : every_kind_of_threads()) {
    Tensor spread = random_tensor(kBf16, extents, 1);
    Tensor sum = random_tensor(kBf16, extents, 2);
    EXPECT_EQ(fused_add_rms_norm(spread.mutable_view(), sum.mutable_view(),
                                 spread.view(), sum.view(), weight.view(), 1e-6,
                                 threads),
              Status::kOk);
    expect_same_bits(whole, spread);
    expect_same_bits(whole_sum, sum);
  }
}

// Callers of every kind of threads share pools and what they read.
TEST_F(PublicFusedAddRmsNorm, test_callers_on_many_threads_at_once_same_bits) {
  const Extents extents = {100, 1200};
  const Tensor input = random_tensor(kBf16, extents, 1);
  const Tensor residual = random_tensor(kBf16, extents, 2);
  const Tensor weight = random_tensor(kBf16, {1200}, 3);
  Tensor alone(kBf16, extents);
  Tensor alone_sum(kBf16, extents);
  ASSERT_EQ(call(alone, alone_sum, input, residual, weight), Status::kOk);
  const std::vector<Threads> kinds = every_kind_of_threads();
  at_once(6, [&](int n) {
    for (std::size_t turn = 0; turn < kinds.size(); ++turn) {
      const std::size_t kind = (turn + static_cast<std::size_t>(n)) % 7;
      Tensor output(kBf16, extents);
      Tensor sum(kBf16, extents);
      EXPECT_EQ(fused_add_rms_norm(output.mutable_view(), sum.mutable_view(),
                                   input.view(), residual.view(), weight.view(),
                                   1e-6, kinds[kind]),
                Status::kOk);
      expect_same_bits(alone, output);
      expect_same_bits(alone_sum, sum);
    }
  });
}

TEST_F(PublicFusedAddRmsNorm, test_rows_past_two_to_the_31_apart_right_rows) {
  constexpr std::int64_t kStride = (1LL << 31) + 17;
  const Tensor dense = random_tensor(kFp16, {2, 97}, 1);
  const Tensor added = random_tensor(kFp16, {2, 97}, 2);
  const Tensor weight = random_tensor(kFp16, {97}, 3);
  Tensor expected(kFp16, {2, 97});
  Tensor expected_sum(kFp16, {2, 97});
  ASSERT_EQ(call(expected, expected_sum, dense, added, weight), Status::kOk);
  for (const std::int64_t stride : {kStride, -kStride}) {
    const FarRows input(kFp16, 97, stride, &dense);
    const FarRows residual(kFp16, 97, stride + 2, &added);
    const FarRows output(kFp16, 97, -stride);
    const FarRows sum(kFp16, 97, 4 - stride);
    if (!input.reserved() || !residual.reserved() || !output.reserved() ||
        !sum.reserved()) {
      GTEST_SKIP() << kNoReserve;
    }
    ASSERT_EQ(fused_add_rms_norm(
                  output.view<MutableTensorView>(),
                  sum.view<MutableTensorView>(), input.view<TensorView>(),
                  residual.view<TensorView>(), weight.view(), 1e-6),
              Status::kOk);
    expect_same_bits(output.rows(), expected);
    expect_same_bits(sum.rows(), expected_sum);
  }
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
  Tensor sum(kFp32, {1, 8});
  EXPECT_EQ(call(output, sum, input, input, weight), Status::kUnknownLevel);
  EXPECT_TRUE(output.memory().intact());
}

}  // namespace
}  // namespace xllm_kernel::test
