// The definition of RMSNorm in fp64, its error bound, and how tests reach every
// kernel. The reference includes nothing of csrc.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "simd/core/block.h"
#include "simd/rms_norm/variants.h"
#include "support/formats.h"
#include "support/kernels.h"
#include "support/tensor.h"
#include "xllm_kernel/rms_norm.h"

namespace xllm_kernel::simd {

using RmsNormVariant = Variant<RmsNormTask>;

// For messages.
inline void PrintTo(  // NOLINT(readability-identifier-naming)
    const RmsNormVariant& variant, std::ostream* out) {
  *out << "kernel " << test::variant_name(variant);
}

}  // namespace xllm_kernel::simd

namespace xllm_kernel::test {

// fp64 values of one row; exact but for 2^-50 or so.
inline std::vector<double> reference_row(const Tensor& input,
                                         const Tensor& weight, double eps,
                                         std::int64_t row) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < input.width(); ++i) {
    sum += input.get(row, i) * input.get(row, i);
  }
  const double rms = std::sqrt(sum / static_cast<double>(input.width()) +
                               static_cast<double>(static_cast<float>(eps)));
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(input.width()));
  for (std::int64_t i = 0; i < input.width(); ++i) {
    result.push_back(input.get(row, i) / rms * weight.get(0, i));
  }
  return result;
}

// How far a correct kernel may be from `exact`. With u = 2^-24: a lane of n/64
// fused additions of non-negative terms and 6 levels of the tree err by
// (n/64 + 7) u of the sum; dividing by the width and adding eps by 2 u more;
// the root halves that; root, reciprocal and the two products add 4 u. One
// rounding to the output's format adds half of its ULP, and fp32 subnormals on
// the way half of theirs, scaled by the weight.
inline double tolerance(const Tensor& input, double exact, double weight) {
  const double u = std::ldexp(1.0, -24);
  const double lane =
      std::ceil(static_cast<double>(input.width()) / simd::kLanes);
  const double relative = ((lane + 9.0) / 2.0 + 4.0) * u * 1.001;
  const double before = std::fabs(exact) * relative +
                        std::ldexp(1.0, -150) * (1.0 + std::fabs(weight));
  return before + input.format().ulp(std::fabs(exact) + before) / 2.0;
}

inline void expect_close(const Tensor& output, const Tensor& input,
                         const Tensor& weight, double eps) {
  for (std::int64_t row = 0; row < input.rows(); ++row) {
    const std::vector<double> exact = reference_row(input, weight, eps, row);
    for (std::int64_t i = 0; i < input.width(); ++i) {
      const double wanted = exact[static_cast<std::size_t>(i)];
      ASSERT_NEAR(output.get(row, i), wanted,
                  tolerance(input, wanted, weight.get(0, i)))
          << input.format().name << " row " << row << " of " << input.rows()
          << ", column " << i << " of " << input.width();
    }
  }
}

// Runs one kernel of the table, past the public function's choices.
inline void run_on_views(const simd::RmsNormVariant& variant,
                         const MutableTensorView& output,
                         const TensorView& input, const Tensor& weight,
                         double eps,
                         simd::Stores stores = simd::Stores::kCached) {
  const simd::RowLayout output_rows(output);
  const simd::RowLayout input_rows(input);
  // The kernel uses it up.
  // NOLINTNEXTLINE(misc-const-correctness)
  simd::RmsNormTask task{.input = {input_rows, input.base(), 0},
                         .output = {output_rows, output.base(), 0},
                         .weight = weight.view().base(),
                         .rows = input_rows.rows(),
                         .width = input.extent(input.rank() - 1),
                         .eps = static_cast<float>(eps),
                         .stores = stores};
  variant.kernel(task);
}

inline void run_kernel(const simd::RmsNormVariant& variant, Tensor& output,
                       const Tensor& input, const Tensor& weight, double eps,
                       simd::Stores stores = simd::Stores::kCached) {
  run_on_views(variant, output.mutable_view(), input.view(), weight, eps,
               stores);
}

// The scalar kernel of the same dtype, which every other level must repeat.
inline const simd::RmsNormVariant& scalar_of(
    const simd::RmsNormVariant& variant) {
  for (const simd::RmsNormVariant& other : simd::rms_norm_variants()) {
    if (other.level == simd::Level::kScalar && other.dtype == variant.dtype &&
        other.weight == variant.weight) {
      return other;
    }
  }
  std::abort();
}

// Base of tests over the whole table.
class EveryKernel : public testing::TestWithParam<simd::RmsNormVariant> {
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

inline std::string kernel_name(
    const testing::TestParamInfo<simd::RmsNormVariant>& info) {
  return variant_name(info.param);
}

}  // namespace xllm_kernel::test
