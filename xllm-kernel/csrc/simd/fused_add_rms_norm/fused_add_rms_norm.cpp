// The public fused_add_rms_norm: checks every argument, then runs the kernel of
// this process's level. Holds no arithmetic.
#include "xllm_kernel/fused_add_rms_norm.h"

#include "simd/core/levels.h"
#include "simd/core/operands.h"
#include "simd/core/rows.h"
#include "simd/fused_add_rms_norm/variants.h"

namespace xllm_kernel {

namespace {

using simd::ranges_meet;
using simd::same_tensor;

constexpr simd::Unlike kResidualUnlike{.shape = Status::kResidualShape,
                                       .dtype = Status::kResidualDType,
                                       .stride = Status::kResidualStride};
constexpr simd::Unlike kOutputUnlike{.shape = Status::kOutputShape,
                                     .dtype = Status::kOutputDType,
                                     .stride = Status::kOutputStride};
constexpr simd::Unlike kSumUnlike{.shape = Status::kSumShape,
                                  .dtype = Status::kSumDType,
                                  .stride = Status::kSumStride};

struct Operands {
  const MutableTensorView& output;
  const MutableTensorView& sum;
  const TensorView& input;
  const TensorView& residual;
  const TensorView& weight;
};

Status check_forms(const Operands& of, double eps) noexcept {
  Status status = simd::check_rows_weight_eps(of.input, of.weight, eps);
  if (status != Status::kOk) return status;
  status = simd::check_like(of.residual, of.input, kResidualUnlike);
  if (status != Status::kOk) return status;
  status = simd::check_like(of.output, of.input, kOutputUnlike);
  if (status != Status::kOk) return status;
  return simd::check_like(of.sum, of.input, kSumUnlike);
}

// A row's input and residual are read before anything of the row but the sum is
// written, and each block of the sum after it was read. Hence the two pairs.
Status check_memory(const Operands& of) noexcept {
  const bool output_meets_input =
      ranges_meet(of.output, of.input) && !same_tensor(of.output, of.input);
  if (output_meets_input || ranges_meet(of.output, of.sum) ||
      ranges_meet(of.output, of.residual) ||
      ranges_meet(of.output, of.weight)) {
    return Status::kOutputAlias;
  }
  const bool sum_meets_residual =
      ranges_meet(of.sum, of.residual) && !same_tensor(of.sum, of.residual);
  if (sum_meets_residual || ranges_meet(of.sum, of.input) ||
      ranges_meet(of.sum, of.weight)) {
    return Status::kSumAlias;
  }
  return Status::kOk;
}

// `rows` empty means all of them.
Status run(const Operands& of, double eps, const RowRange* rows) noexcept {
  Status status = simd::selected_level().result.status;
  if (status != Status::kOk) return status;
  status = check_forms(of, eps);
  if (status != Status::kOk) return status;
  RowRange range;
  if (of.input.elements() == 0) return simd::choose_rows(rows, 0, &range);

  const std::int64_t width = of.weight.extent(0);
  const simd::RowLayout input_rows(of.input);
  const simd::RowLayout residual_rows(of.residual);
  const simd::RowLayout sum_rows(of.sum);
  const simd::RowLayout output_rows(of.output);
  const std::int64_t row_bytes = width * dtype_size(of.input.dtype());
  if (!output_rows.rows_apart(row_bytes)) return Status::kOutputStride;
  if (!sum_rows.rows_apart(row_bytes)) return Status::kSumStride;
  status = check_memory(of);
  if (status != Status::kOk) return status;
  status = simd::choose_rows(rows, input_rows.rows(), &range);
  if (status != Status::kOk) return status;
  simd::selected_kernel<&simd::fused_add_rms_norm_variants>(of.input.dtype())(
      {.input = {input_rows, of.input.base(), range.begin},
       .residual = {residual_rows, of.residual.base(), range.begin},
       .sum = {sum_rows, of.sum.base(), range.begin},
       .output = {output_rows, of.output.base(), range.begin},
       .weight = of.weight.base(),
       .rows = range.end - range.begin,
       .width = width,
       .eps = static_cast<float>(eps)});
  return Status::kOk;
}

}  // namespace

Status fused_add_rms_norm(const MutableTensorView& output,
                          const MutableTensorView& sum, const TensorView& input,
                          const TensorView& residual, const TensorView& weight,
                          double eps) noexcept {
  return run({output, sum, input, residual, weight}, eps, nullptr);
}

Status fused_add_rms_norm(const MutableTensorView& output,
                          const MutableTensorView& sum, const TensorView& input,
                          const TensorView& residual, const TensorView& weight,
                          double eps, RowRange rows) noexcept {
  return run({output, sum, input, residual, weight}, eps, &rows);
}

}  // namespace xllm_kernel
