// The arguments of one fused_add_rms_norm call in both forms, and how to make
// it: a kernel of the table or the public function. The only place that
// benchmarks know either from.
#pragma once

#include <cstdint>

#include "simd/core/rows.h"
#include "simd/fused_add_rms_norm/variants.h"
#include "support/case.h"
#include "xllm_kernel/fused_add_rms_norm.h"

namespace xllm_kernel::bench {

enum class Results : std::uint8_t { kFresh, kInPlace };

// In place, input becomes the norm and residual the sum. Repeated, the residual
// grows by norms of magnitude 1 or so, up to where its dtype absorbs them.
template <Results kResults>
class FusedAddRmsNormCase final {
 public:
  FusedAddRmsNormCase(DType dtype, DType weight, Shape shape)
      : shape_(shape),
        input_(dtype, shape),
        residual_(dtype, shape),
        weight_(weight, shape.width),
        fresh_output_(dtype, kInPlace ? kUnused : shape),
        fresh_sum_(dtype, kInPlace ? kUnused : shape) {}

  // Two tensors read and two written, wherever they lie.
  [[nodiscard]] std::int64_t bytes() const {
    return 4 * input_.bytes() + weight_.bytes();
  }

  void run(const simd::Variant<simd::FusedAddRmsNormTask>& variant) const {
    // The kernel uses it up.
    // NOLINTNEXTLINE(misc-const-correctness)
    simd::FusedAddRmsNormTask task{.input = {rows_, input_.data(), 0},
                                   .residual = {rows_, residual_.data(), 0},
                                   .sum = {rows_, sum_.data(), 0},
                                   .output = {rows_, output_.data(), 0},
                                   .weight = weight_.data(),
                                   .rows = shape_.rows,
                                   .width = shape_.width,
                                   .eps = kEps};
    variant.kernel(task);
  }

  [[nodiscard]] Status run_public(const Threads& threads = {}) const {
    return fused_add_rms_norm(output_view_, sum_view_, input_view_,
                              residual_view_, weight_view_, kEps, threads);
  }

 private:
  static constexpr bool kInPlace = kResults == Results::kInPlace;
  static constexpr float kEps = 1e-6F;
  // Of the fresh results in place, where nothing refers to them.
  static constexpr Shape kUnused{1, 1};

  Shape shape_;
  Tensor input_;
  Tensor residual_;
  Tensor weight_;
  Tensor fresh_output_;
  Tensor fresh_sum_;
  const Tensor& output_ = kInPlace ? input_ : fresh_output_;
  const Tensor& sum_ = kInPlace ? residual_ : fresh_sum_;
  TensorView input_view_ = input_.view();
  TensorView residual_view_ = residual_.view();
  TensorView weight_view_ = weight_.view();
  MutableTensorView output_view_ = output_.mutable_view();
  MutableTensorView sum_view_ = sum_.mutable_view();
  simd::RowLayout rows_{input_view_};
};

}  // namespace xllm_kernel::bench
