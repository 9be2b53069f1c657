// fused_add_rms_norm in floating-point environments other than the default:
// left as found, and the same bits at every level.
#include <gtest/gtest.h>

#include "fused_add_rms_norm/support.h"
#include "support/float_modes.h"

namespace xllm_kernel::test {
namespace {

// The processor's own rounding to fp16 follows the mode there.
bool rounds_by_mode(const FusedAddRmsNormVariant& variant) {
  return variant.level == simd::Level::kNeon &&
         variant.dtype == DType::kFloat16;
}

TEST_P(EveryFusedKernel,
       test_any_environment_left_as_found_same_bits_as_scalar) {
  const Extents extents = {3, 200};
  const double least =
      std::ldexp(1.0, format().least_exponent() - format().mantissa_bits);
  for (const double scale : {1.0, least * 9}) {
    const Tensor input = random_tensor(format(), extents, 1, scale);
    const Tensor residual = random_tensor(format(), extents, 2, scale);
    const Tensor weight = random_tensor(weight_format(), {200}, 3);
    for (const FloatMode& mode : every_float_mode()) {
      if (rounds_by_mode(GetParam()) && mode.rounding != FE_TONEAREST) continue;
      SCOPED_TRACE(mode.name);
      Tensor output(format(), extents);
      Tensor sum(format(), extents);
      Tensor scalar_output(format(), extents);
      Tensor scalar_sum(format(), extents);
      {
        const InMode in(mode);
        const std::uint64_t before = float_controls();
        run_fused(GetParam(), output, sum, input, residual, weight, 1e-6);
        EXPECT_EQ(float_controls(), before);
        run_fused(scalar_of(GetParam()), scalar_output, scalar_sum, input,
                  residual, weight, 1e-6);
      }
      expect_same_bits(output, scalar_output);
      expect_same_bits(sum, scalar_sum);
    }
  }
}

// Sums that are subnormal, of operands that are and that are not.
TEST_P(EveryFusedKernel, test_flushing_fp32_and_bf16_sums_zero_fp16_kept) {
  const double normal = std::ldexp(1.5, format().least_exponent());
  const double least =
      std::ldexp(1.0, format().least_exponent() - format().mantissa_bits);
  const Tensor weight = random_tensor(weight_format(), {64}, 1);
  for (const auto& [a, b] :
       {std::pair{3 * least, 4 * least}, {normal, least - normal}}) {
    const Tensor input =
        filled(format(), {1, 64}, [&](auto, auto) { return a; });
    const Tensor residual =
        filled(format(), {1, 64}, [&](auto, auto) { return b; });
    Tensor output(format(), {1, 64});
    Tensor sum(format(), {1, 64});
    {
      const InMode in(flushing());
      run_fused(GetParam(), output, sum, input, residual, weight, 1e-6);
    }
    const bool kept = format().dtype == DType::kFloat16;
    EXPECT_EQ(sum.get(0, 9), kept ? a + b : 0.0);
  }
}

}  // namespace
}  // namespace xllm_kernel::test
