// How tests reach every fused_add_rms_norm kernel, and what its sum must be by
// definition. The norm's own definition is rms_norm/support.h's.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>

#include "rms_norm/support.h"
#include "simd/fused_add_rms_norm/variants.h"
#include "support/kernels.h"
#include "xllm_kernel/fused_add_rms_norm.h"

namespace xllm_kernel::simd {

using FusedAddRmsNormVariant = Variant<FusedAddRmsNormTask>;

// For messages.
inline void PrintTo(  // NOLINT(readability-identifier-naming)
    const FusedAddRmsNormVariant& variant, std::ostream* out) {
  *out << "kernel " << test::variant_name(variant);
}

}  // namespace xllm_kernel::simd

namespace xllm_kernel::test {

using simd::FusedAddRmsNormVariant;

// Runs one kernel of the table, past the public function's choice.
inline void run_fused(const FusedAddRmsNormVariant& variant, Tensor& output,
                      Tensor& sum, const Tensor& input, const Tensor& residual,
                      const Tensor& weight, double eps) {
  const MutableTensorView to = output.mutable_view();
  const MutableTensorView carried = sum.mutable_view();
  const TensorView from = input.view();
  const TensorView added = residual.view();
  const simd::RowLayout to_rows(to);
  const simd::RowLayout sum_rows(carried);
  const simd::RowLayout from_rows(from);
  const simd::RowLayout added_rows(added);
  // The kernel uses it up.
  // NOLINTNEXTLINE(misc-const-correctness)
  simd::FusedAddRmsNormTask task{.input = {from_rows, from.base(), 0},
                                 .residual = {added_rows, added.base(), 0},
                                 .sum = {sum_rows, carried.base(), 0},
                                 .output = {to_rows, to.base(), 0},
                                 .weight = weight.view().base(),
                                 .rows = from_rows.rows(),
                                 .width = input.width(),
                                 .eps = static_cast<float>(eps)};
  variant.kernel(task);
}

// The scalar kernel of the same dtype, which every other level must repeat.
inline const FusedAddRmsNormVariant& scalar_of(
    const FusedAddRmsNormVariant& variant) {
  for (const auto& other : simd::fused_add_rms_norm_variants()) {
    if (other.level == simd::Level::kScalar && other.dtype == variant.dtype &&
        other.weight == variant.weight) {
      return other;
    }
  }
  std::abort();
}

// The sum by definition: exact in fp64 or rounded far below fp32's last bit,
// which one rounding to fp32 and one to the dtype then cannot tell.
inline Tensor defined_sum(const Tensor& input, const Tensor& residual) {
  Tensor sum(input.format(), {input.rows(), input.width()});
  sum.fill([&](auto row, auto i) {
    return static_cast<double>(
        static_cast<float>(input.get(row, i) + residual.get(row, i)));
  });
  return sum;
}

class EveryFusedKernel : public testing::TestWithParam<FusedAddRmsNormVariant> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam().level)) {
      GTEST_SKIP() << "this machine has no level "
                   << level_name(GetParam().level);
    }
  }
  [[nodiscard]] const Format& format() const {
    return format_of(GetParam().dtype);
  }
  [[nodiscard]] const Format& weight_format() const {
    return format_of(GetParam().weight);
  }
};

inline std::string fused_kernel_name(
    const testing::TestParamInfo<FusedAddRmsNormVariant>& info) {
  return variant_name(info.param);
}

}  // namespace xllm_kernel::test
