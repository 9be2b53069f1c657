// The public fused_add_rms_norm: checks every argument, then runs the kernel of
// this process's level. Holds no arithmetic.
#include "xllm_kernel/fused_add_rms_norm.h"

#include "simd/core/levels.h"
#include "simd/core/operands.h"
#include "simd/core/rows.h"
#include "simd/core/spread.h"
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

// What lies in rows, once the forms are checked.
struct Layouts {
  explicit Layouts(const Operands& of) noexcept
      : input(of.input),
        residual(of.residual),
        sum(of.sum),
        output(of.output) {}

  simd::RowLayout input;
  simd::RowLayout residual;
  simd::RowLayout sum;
  simd::RowLayout output;
};

Status run(const Operands& of, double eps, const Threads& threads) noexcept {
  Status status = simd::selected_level().result.status;
  if (status != Status::kOk) return status;
  status = check_forms(of, eps);
  if (status != Status::kOk) return status;
  if (of.input.elements() == 0) return Status::kOk;

  const std::int64_t width = of.weight.extent(0);
  const std::int64_t row_bytes = width * dtype_size(of.input.dtype());
  const Layouts layouts(of);
  if (!layouts.output.rows_apart(row_bytes)) return Status::kOutputStride;
  if (!layouts.sum.rows_apart(row_bytes)) return Status::kSumStride;
  status = check_memory(of);
  if (status != Status::kOk) return status;
  const auto kernel = simd::selected_kernel<&simd::fused_add_rms_norm_variants>(
      of.input.dtype(), of.weight.dtype());
  simd::spread_rows(
      threads, layouts.input.rows(), 4 * row_bytes,
      [&](std::int64_t begin, std::int64_t end) noexcept {
        simd::FusedAddRmsNormTask task{
            .input = {layouts.input, of.input.base(), begin},
            .residual = {layouts.residual, of.residual.base(), begin},
            .sum = {layouts.sum, of.sum.base(), begin},
            .output = {layouts.output, of.output.base(), begin},
            .weight = of.weight.base(),
            .rows = end - begin,
            .width = width,
            .eps = static_cast<float>(eps)};
        kernel(task);
      });
  return Status::kOk;
}

}  // namespace

namespace simd {

XLLM_KERNEL_DEFINE_VARIANTS(fused_add_rms_norm, FusedAddRmsNormTask)

}  // namespace simd

Status fused_add_rms_norm(const MutableTensorView& output,
                          const MutableTensorView& sum, const TensorView& input,
                          const TensorView& residual, const TensorView& weight,
                          double eps, const Threads& threads) noexcept {
  return run({output, sum, input, residual, weight}, eps, threads);
}

}  // namespace xllm_kernel
