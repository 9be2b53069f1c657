// Allocation by torch's stable ABI. Checks nothing.
#include "torch/rows.h"

#include <algorithm>
#include <vector>

#include "torch/csrc/stable/library.h"

namespace xllm_kernel::bridge {

namespace {

// Dense row-major, as torch itself strides empty dimensions.
std::vector<std::int64_t> contiguous_strides(
    torch::headeronly::IntHeaderOnlyArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= std::max<std::int64_t>(sizes[axis], 1);
  }
  return strides;
}

}  // namespace

torch::stable::Tensor new_like(const TensorFacts& facts) {
  const std::vector<std::int64_t> strides = contiguous_strides(facts.sizes);
  AtenTensorHandle handle = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      facts.rank(), facts.sizes.data(), strides.data(), facts.dtype,
      facts.device_type, facts.device_index, &handle));
  return torch::stable::Tensor(handle);
}

}  // namespace xllm_kernel::bridge
