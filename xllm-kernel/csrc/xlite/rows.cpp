// How a tensor's rows lie. Checks no limit: the clauses do.
#include "xlite/rows.h"

namespace xllm_kernel::xlite {

std::int64_t row_count(const at::Tensor& tensor) {
  std::int64_t count = 1;
  for (std::int64_t axis = 0; axis < tensor.dim() - 1; ++axis) {
    count *= tensor.size(axis);
  }
  return count;
}

std::optional<std::int64_t> row_step(const at::Tensor& tensor) {
  const std::int64_t width = tensor.size(-1);
  if (width > 1 && tensor.stride(-1) != 1) return std::nullopt;
  if (row_count(tensor) < 2) return width;
  std::optional<std::int64_t> step;
  std::int64_t covered = 0;  // from the first row to where the next must start
  for (std::int64_t axis = tensor.dim() - 2; axis >= 0; --axis) {
    const std::int64_t extent = tensor.size(axis);
    const std::int64_t stride = tensor.stride(axis);
    if (extent == 1) continue;
    if (step && stride != covered) return std::nullopt;
    if (!step) step = stride;
    covered = stride * extent;
  }
  return step;
}

at::Tensor unseen(const at::Tensor& tensor) {
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
      c10::VariableVersion(), /*allow_tensor_metadata_change=*/false));
}

Rows::Rows(const at::Tensor& from)
    : count(row_count(from)), width(from.size(-1)), step(width) {
  const std::optional<std::int64_t> given = row_step(from);
  tensor = unseen(given ? from : from.contiguous());
  step = given.value_or(width);
}

}  // namespace xllm_kernel::xlite
