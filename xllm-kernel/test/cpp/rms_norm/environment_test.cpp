// rms_norm in floating-point environments other than the default: what its
// header says of them, at every level and on every kind of threads.
#include <gtest/gtest.h>

#include "rms_norm/support.h"
#include "support/float_modes.h"
#include "support/threads.h"

namespace xllm_kernel::test {
namespace {

using simd::RmsNormVariant;

const RmsNormVariant& same_level(const RmsNormVariant& variant, DType dtype) {
  for (const RmsNormVariant& other : simd::rms_norm_variants()) {
    if (other.level == variant.level && other.dtype == dtype &&
        other.weight == dtype) {
      return other;
    }
  }
  std::abort();
}

Tensor run_in(const FloatMode& mode, const RmsNormVariant& variant,
              const Tensor& input, const Tensor& weight, double eps = 1e-6) {
  Tensor output(input.format(), {input.rows(), input.width()});
  const InMode in(mode);
  run_kernel(variant, output, input, weight, eps);
  return output;
}

Tensor widened(const Tensor& tensor) {
  return filled(kFp32, {tensor.rows(), tensor.width()},
                [&](auto row, auto i) { return tensor.get(row, i); });
}

// The processor's own rounding to fp16 follows the mode there.
bool rounds_by_mode(const RmsNormVariant& variant) {
  return variant.level == simd::Level::kNeon &&
         variant.dtype == DType::kFloat16;
}

// Normal values, subnormals, zeros and what rounds to subnormals.
Tensor of_all_magnitudes(const Format& format, const Extents& extents,
                         unsigned seed) {
  Tensor tensor = random_tensor(format, extents, seed);
  const int least = format.least_exponent() - format.mantissa_bits;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t i = row % 3; i < tensor.width(); i += 3) {
      const auto exponent = static_cast<int>((row + i) % 60);
      tensor.set(row, i, std::ldexp(tensor.get(row, i), least + exponent));
    }
  }
  return tensor;
}

TEST_P(EveryKernel, test_any_environment_left_as_found) {
  const Tensor weight = random_tensor(weight_format(), {100}, 1);
  const Tensor input = random_tensor(format(), {5, 100}, 2);
  for (const FloatMode& mode : every_float_mode()) {
    Tensor output(format(), {5, 100});
    const InMode in(mode);
    const std::uint64_t before = float_controls();
    run_kernel(GetParam(), output, input, weight, 1e-6);
    EXPECT_EQ(float_controls(), before) << mode.name;
    EXPECT_EQ(std::fegetround(), mode.rounding) << mode.name;
  }
}

TEST_P(EveryKernel, test_any_environment_same_bits_as_scalar) {
  for (const std::int64_t width : {7, 64, 200}) {
    const Tensor input = of_all_magnitudes(format(), {6, width}, 1);
    const Tensor weight = of_all_magnitudes(weight_format(), {width}, 2);
    for (const FloatMode& mode : every_float_mode()) {
      if (rounds_by_mode(GetParam()) && mode.rounding != FE_TONEAREST) continue;
      SCOPED_TRACE(mode.name);
      for (const double eps : {0.0, 1e-40, 1e-6}) {
        expect_same_bits(
            run_in(mode, GetParam(), input, weight, eps),
            run_in(mode, scalar_of(GetParam()), input, weight, eps));
      }
    }
  }
}

// 16-bit results are those of fp32, rounded to nearest even whatever the mode.
TEST_P(EveryKernel,
       test_other_rounding_fp32_steps_follow_it_the_last_does_not) {
  const Tensor input = random_tensor(format(), {4, 200}, 1);
  const Tensor weight = random_tensor(weight_format(), {200}, 2);
  const RmsNormVariant& fp32 = same_level(GetParam(), DType::kFloat32);
  const Tensor nearest = run_in({}, fp32, widened(input), widened(weight));
  for (const FloatMode& mode : every_float_mode()) {
    if (mode.rounding == FE_TONEAREST || mode.flush_operands ||
        mode.flush_results || rounds_by_mode(GetParam())) {
      continue;
    }
    SCOPED_TRACE(mode.name);
    const Tensor wide = run_in(mode, fp32, widened(input), widened(weight));
    expect_same_bits(run_in(mode, GetParam(), input, weight),
                     filled(format(), {4, 200}, [&](auto row, auto i) {
                       return wide.get(row, i);
                     }));
    EXPECT_NE(wide.snapshot(), nearest.snapshot());
  }
}

// Input and weight each with subnormals at every third place.
TEST_P(EveryKernel, test_flushing_fp32_and_bf16_subnormals_zero_fp16_kept) {
  const auto with_subnormals = [](const Format& of, std::int64_t rows,
                                  bool flushed) {
    const double tiny =
        -std::ldexp(5.0, of.least_exponent() - of.mantissa_bits);
    const double third = flushed && of.dtype != DType::kFloat16 ? -0.0 : tiny;
    return filled(of, {rows, 99}, [=](auto row, auto i) {
      return i % 3 == 0 ? third : 1.0 + static_cast<double>(row + i % 2);
    });
  };
  const Tensor output =
      run_in(flushing(), GetParam(), with_subnormals(format(), 3, false),
             with_subnormals(weight_format(), 1, false));
  const Tensor expected =
      run_in({}, GetParam(), with_subnormals(format(), 3, true),
             with_subnormals(weight_format(), 1, true));
  expect_same_bits(output, expected);
}

TEST_P(EveryKernel, test_flushing_fp32_and_bf16_results_zero_fp16_kept) {
  // Both normal, their product not.
  const double small = std::ldexp(1.0, format().least_exponent());
  const Tensor weight =
      filled(weight_format(), {64}, [&](auto, auto) { return small; });
  const Tensor input = filled(
      format(), {1, 64}, [](auto, auto i) { return i == 0 ? -0.25 : 1.0; });
  const Tensor output = run_in(flushing(), GetParam(), input, weight, 0.0);
  EXPECT_TRUE(std::signbit(output.get(0, 0)));
  EXPECT_EQ(output.get(0, 0) != 0.0, format().dtype == DType::kFloat16);
}

// Threads of a pool were started in another environment, and keep it.
TEST(PublicEnvironment, test_threads_of_every_kind_work_in_the_callers) {
  if (simd_level().status != Status::kOk) GTEST_SKIP() << "no such level here";
  const Extents extents = {150, 1200};
  const Tensor input = of_all_magnitudes(kFp32, extents, 1);
  const Tensor weight = of_all_magnitudes(kFp32, {1200}, 2);
  const auto call = [&](const FloatMode& mode, const Threads& threads) {
    Tensor output(kFp32, extents);
    const InMode in(mode);
    EXPECT_EQ(rms_norm(output.mutable_view(), input.view(), weight.view(), 1e-6,
                       threads),
              Status::kOk);
    return output;
  };
  const FloatMode modes[] = {
      flushing(), {}, {"downward", FE_DOWNWARD, false, false}, flushing()};
  for (const FloatMode& mode : modes) {
    const Tensor alone = call(mode, {});
    for (const Threads& threads : every_kind_of_threads()) {
      SCOPED_TRACE(mode.name);
      expect_same_bits(call(mode, threads), alone);
    }
  }
}

}  // namespace
}  // namespace xllm_kernel::test
