// The sentences by which bridges refuse arguments, word for word those of
// python/xllm_kernel/clauses.py. Knows no operator.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "torch/csrc/stable/tensor.h"

namespace xllm_kernel::bridge {

// Names one implementation in every message.
struct Implementation {
  std::string_view operation;
  std::string_view name;
};

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

// Throws the error that Python receives as RuntimeError with exactly this text:
// STD_TORCH_CHECK would put this file's path before it.
[[noreturn]] void refuse(const Implementation& implementation,
                         const std::string& sentence, std::string_view clause);

// As str(tensor.dtype) without "torch.", and str(tensor.device).
[[nodiscard]] std::string dtype_name(std::int32_t dtype);
[[nodiscard]] std::string device_name(const TensorFacts& facts);
// As Python's format(value, "g").
[[nodiscard]] std::string number_text(double value);

// Counts a write that is about to happen, so that a backward pass that saved
// the tensor earlier refuses to run on what stands there then. Returns false
// where torch itself lets nobody write: an inference tensor outside inference
// mode.
[[nodiscard]] bool count_write(const torch::stable::Tensor& tensor);

}  // namespace xllm_kernel::bridge
