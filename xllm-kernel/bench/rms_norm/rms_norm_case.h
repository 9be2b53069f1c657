// The arguments of one rms_norm call, and how to make it: a kernel of the table
// or the public function. The only place that benchmarks know either from.
#pragma once

#include "simd/core/rows.h"
#include "simd/rms_norm/variants.h"
#include "support/case.h"
#include "xllm_kernel/rms_norm.h"

namespace xllm_kernel::bench {

class RmsNormCase final {
 public:
  RmsNormCase(DType dtype, DType weight, Shape shape)
      : shape_(shape),
        input_(dtype, shape),
        weight_(weight, shape.width),
        output_(dtype, shape) {}

  [[nodiscard]] std::int64_t bytes() const {
    return input_.bytes() + weight_.bytes() + output_.bytes();
  }

  // With the stores that the public function would choose.
  void run(const simd::Variant<simd::RmsNormTask>& variant) const {
    // The kernel uses it up.
    // NOLINTNEXTLINE(misc-const-correctness)
    simd::RmsNormTask task{.input = {rows_, input_.data(), 0},
                           .output = {rows_, output_.data(), 0},
                           .weight = weight_.data(),
                           .rows = shape_.rows,
                           .width = shape_.width,
                           .eps = kEps,
                           .stores = simd::stores_for(output_.bytes())};
    variant.kernel(task);
  }

  [[nodiscard]] Status run_public(const Threads& threads = {}) const {
    return rms_norm(output_view_, input_view_, weight_view_, kEps, threads);
  }

 private:
  static constexpr float kEps = 1e-6F;

  Shape shape_;
  Tensor input_;
  Tensor weight_;
  Tensor output_;
  TensorView input_view_ = input_.view();
  TensorView weight_view_ = weight_.view();
  MutableTensorView output_view_ = output_.mutable_view();
  simd::RowLayout rows_{input_view_};
};

}  // namespace xllm_kernel::bench
