// The public rms_norm: checks every argument, then runs the kernel of this
// process's level. Holds no arithmetic.
#include "xllm_kernel/rms_norm.h"

#include "simd/core/levels.h"
#include "simd/core/operands.h"
#include "simd/core/rows.h"
#include "simd/rms_norm/variants.h"

namespace xllm_kernel {

namespace {

constexpr simd::Unlike kOutputUnlike{.shape = Status::kOutputShape,
                                     .dtype = Status::kOutputDType,
                                     .stride = Status::kOutputStride};

Status check_operands(const MutableTensorView& output, const TensorView& input,
                      const TensorView& weight, double eps) noexcept {
  const Status read = simd::check_rows_weight_eps(input, weight, eps);
  if (read != Status::kOk) return read;
  return simd::check_like(output, input, kOutputUnlike);
}

// `rows` empty means all of them.
Status run(const MutableTensorView& output, const TensorView& input,
           const TensorView& weight, double eps,
           const RowRange* rows) noexcept {
  const Status level = simd::selected_level().result.status;
  if (level != Status::kOk) return level;
  const Status operands = check_operands(output, input, weight, eps);
  if (operands != Status::kOk) return operands;
  RowRange range;
  if (input.elements() == 0) return simd::choose_rows(rows, 0, &range);

  const std::int64_t width = weight.extent(0);
  const simd::RowLayout input_rows(input);
  const simd::RowLayout output_rows(output);
  if (!output_rows.rows_apart(width * dtype_size(output.dtype()))) {
    return Status::kOutputStride;
  }
  if (simd::ranges_meet(output, input) || simd::ranges_meet(output, weight)) {
    return Status::kOutputOverlap;
  }
  const Status chosen = simd::choose_rows(rows, input_rows.rows(), &range);
  if (chosen != Status::kOk) return chosen;
  simd::selected_kernel<&simd::rms_norm_variants>(input.dtype())(
      {.input = {input_rows, input.base(), range.begin},
       .output = {output_rows, output.base(), range.begin},
       .weight = weight.base(),
       .rows = range.end - range.begin,
       .width = width,
       .eps = static_cast<float>(eps)});
  return Status::kOk;
}

}  // namespace

Status rms_norm(const MutableTensorView& output, const TensorView& input,
                const TensorView& weight, double eps) noexcept {
  return run(output, input, weight, eps, nullptr);
}

Status rms_norm(const MutableTensorView& output, const TensorView& input,
                const TensorView& weight, double eps, RowRange rows) noexcept {
  return run(output, input, weight, eps, &rows);
}

}  // namespace xllm_kernel
