// Checks that do not depend on how a view may be written. Touches no memory.
#include "simd/core/operands.h"

#include <cfloat>

namespace xllm_kernel::simd {

Status check_rows_weight_eps(const TensorView& input, const TensorView& weight,
                             double eps) noexcept {
  if (input.rank() < 1) return Status::kInputRank;
  if (weight.rank() != 1) return Status::kWeightRank;
  if (weight.dtype() != input.dtype() && weight.dtype() != DType::kFloat32) {
    return Status::kWeightDType;
  }
  const std::int64_t width = input.extent(input.rank() - 1);
  if (width < 1) return Status::kInputWidth;
  if (weight.extent(0) != width) return Status::kWeightWidth;
  if (!last_stride_is_one(input)) return Status::kInputStride;
  if (!last_stride_is_one(weight)) return Status::kWeightStride;
  // NaN fails both comparisons.
  const bool eps_inside = eps >= 0.0 && eps <= static_cast<double>(FLT_MAX);
  return eps_inside ? Status::kOk : Status::kEps;
}

}  // namespace xllm_kernel::simd
