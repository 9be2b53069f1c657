// The public rms_norm: checks every argument, then runs the kernel of this
// process's level. Holds no arithmetic.
#include "xllm_kernel/rms_norm.h"

#include "simd/core/caches.h"
#include "simd/core/levels.h"
#include "simd/core/operands.h"
#include "simd/core/rows.h"
#include "simd/core/spread.h"
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

}  // namespace

namespace simd {

XLLM_KERNEL_DEFINE_VARIANTS(rms_norm, RmsNormTask)

}  // namespace simd

Status rms_norm(const MutableTensorView& output, const TensorView& input,
                const TensorView& weight, double eps,
                const Threads& threads) noexcept {
  const Status level = simd::selected_level().result.status;
  if (level != Status::kOk) return level;
  const Status operands = check_operands(output, input, weight, eps);
  if (operands != Status::kOk) return operands;
  if (input.elements() == 0) return Status::kOk;

  const std::int64_t width = weight.extent(0);
  const std::int64_t row_bytes = width * dtype_size(input.dtype());
  const simd::RowLayout input_rows(input);
  const simd::RowLayout output_rows(output);
  if (!output_rows.rows_apart(row_bytes)) return Status::kOutputStride;
  if (simd::ranges_meet(output, input) || simd::ranges_meet(output, weight)) {
    return Status::kOutputOverlap;
  }
  const auto kernel = simd::selected_kernel<&simd::rms_norm_variants>(
      input.dtype(), weight.dtype());
  const std::int64_t rows = input_rows.rows();
  const simd::Stores stores = simd::stores_for(rows * row_bytes);
  simd::spread_rows(threads, rows, 2 * row_bytes,
                    [&](std::int64_t begin, std::int64_t end) noexcept {
                      simd::RmsNormTask task{
                          .input = {input_rows, input.base(), begin},
                          .output = {output_rows, output.base(), begin},
                          .weight = weight.base(),
                          .rows = end - begin,
                          .width = width,
                          .eps = static_cast<float>(eps),
                          .stores = stores};
                      kernel(task);
                    });
  return Status::kOk;
}

}  // namespace xllm_kernel
