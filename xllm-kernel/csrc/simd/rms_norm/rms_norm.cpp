// The public rms_norm: checks every argument, then runs the kernel of this
// process's level. Holds no arithmetic.
#include "xllm_kernel/rms_norm.h"

#include <array>
#include <cfloat>

#include "simd/core/levels.h"
#include "simd/core/rows.h"
#include "simd/rms_norm/variants.h"

namespace xllm_kernel {

namespace {

using simd::RmsNormKernel;

// Kernels of the selected level by dtype; filled once.
RmsNormKernel selected_kernel(DType dtype) noexcept {
  static const std::array<RmsNormKernel, 3> by_dtype = [] {
    std::array<RmsNormKernel, 3> kernels{};
    for (const simd::RmsNormVariant& variant : simd::rms_norm_variants()) {
      if (variant.level == simd::selected_level().level) {
        kernels[static_cast<std::size_t>(variant.dtype)] = variant.kernel;
      }
    }
    return kernels;
  }();
  return by_dtype[static_cast<std::size_t>(dtype)];
}

template <class Byte>
bool last_stride_is_one(const BasicTensorView<Byte>& view) noexcept {
  const std::size_t last = view.rank() - 1;
  return view.stride(last) == 1 || view.extent(last) == 1;
}

Status check_operands(const MutableTensorView& output, const TensorView& input,
                      const TensorView& weight, double eps) noexcept {
  if (input.rank() < 1) return Status::kInputRank;
  if (weight.rank() != 1) return Status::kWeightRank;
  if (weight.dtype() != input.dtype()) return Status::kWeightDType;
  const std::int64_t width = input.extent(input.rank() - 1);
  if (width < 1) return Status::kInputWidth;
  if (weight.extent(0) != width) return Status::kWeightWidth;
  if (!last_stride_is_one(input)) return Status::kInputStride;
  if (!last_stride_is_one(weight)) return Status::kWeightStride;
  // NaN fails both comparisons.
  const bool eps_inside = eps >= 0.0 && eps <= static_cast<double>(FLT_MAX);
  if (!eps_inside) return Status::kEps;
  if (output.rank() != input.rank()) return Status::kOutputShape;
  for (std::size_t axis = 0; axis < input.rank(); ++axis) {
    if (output.extent(axis) != input.extent(axis)) return Status::kOutputShape;
  }
  if (output.dtype() != input.dtype()) return Status::kOutputDType;
  return last_stride_is_one(output) ? Status::kOk : Status::kOutputStride;
}

bool ranges_meet(const MutableTensorView& a, const TensorView& b) noexcept {
  return a.begin_byte() < b.end_byte() && b.begin_byte() < a.end_byte();
}

// `rows` empty means all of them.
Status run(const MutableTensorView& output, const TensorView& input,
           const TensorView& weight, double eps,
           const RowRange* rows) noexcept {
  const Status level = simd::selected_level().result.status;
  if (level != Status::kOk) return level;
  const Status operands = check_operands(output, input, weight, eps);
  if (operands != Status::kOk) return operands;
  if (input.elements() == 0) {
    const bool none = rows == nullptr || (rows->begin == 0 && rows->end == 0);
    return none ? Status::kOk : Status::kRowRange;
  }

  const std::int64_t width = weight.extent(0);
  const simd::RowLayout input_rows(input);
  const simd::RowLayout output_rows(output);
  if (!output_rows.rows_apart(width * dtype_size(output.dtype()))) {
    return Status::kOutputStride;
  }
  if (ranges_meet(output, input) || ranges_meet(output, weight)) {
    return Status::kOutputOverlap;
  }
  const RowRange range =
      rows == nullptr ? RowRange{.begin = 0, .end = input_rows.rows()} : *rows;
  if (range.begin < 0 || range.begin > range.end ||
      range.end > input_rows.rows()) {
    return Status::kRowRange;
  }
  selected_kernel(input.dtype())(
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
