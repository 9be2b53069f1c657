// What the bridge's clauses know of a tensor, and its texts. Knows no operator
// and refuses nothing.
#pragma once

#include <cstdint>
#include <string>

#include "torch/csrc/stable/tensor.h"
#include "torch/refusal.h"

namespace xllm_kernel::bridge {

// What clauses may know of a tensor; sizes and strides belong to the tensor.
struct TensorFacts {
  explicit TensorFacts(const torch::stable::Tensor& tensor);

  [[nodiscard]] std::int64_t rank() const noexcept {
    return static_cast<std::int64_t>(sizes.size());
  }
  [[nodiscard]] std::int64_t width() const noexcept {
    return sizes[sizes.size() - 1];
  }
  [[nodiscard]] std::int64_t last_stride() const noexcept {
    return strides[strides.size() - 1];
  }

  torch::headeronly::IntHeaderOnlyArrayRef sizes;
  torch::headeronly::IntHeaderOnlyArrayRef strides;
  std::int32_t dtype = 0;
  std::int32_t device_type = 0;
  std::int32_t device_index = 0;
};

// As str(tensor.dtype) without "torch.", and str(tensor.device).
[[nodiscard]] std::string dtype_name(std::int32_t dtype);
[[nodiscard]] std::string device_name(const TensorFacts& facts);

// Counts a write that is about to happen, so that a backward pass that saved
// the tensor earlier refuses to run on what stands there then. Returns false
// where torch itself lets nobody write: an inference tensor outside inference
// mode.
[[nodiscard]] bool count_write(const torch::stable::Tensor& tensor);

}  // namespace xllm_kernel::bridge
