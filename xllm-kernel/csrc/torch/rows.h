// What bridges do around a kernel on rows: allocate outputs and make views.
// Knows no operator.
#pragma once

#include <cstdint>
#include <span>

#include "torch/clauses.h"
#include "torch/csrc/stable/tensor.h"
#include "torch/domain.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::bridge {

// Uninitialised and contiguous, otherwise like the tensor of these facts.
[[nodiscard]] torch::stable::Tensor new_like(const TensorFacts& facts);

[[nodiscard]] inline TensorView read_view(const Clauses& clauses,
                                          const Operand& of, DType dtype) {
  TensorView view;
  clauses.require_ok(TensorView::make(
      of.tensor.const_data_ptr(),
      std::span(of.facts.sizes.data(), of.facts.sizes.size()),
      std::span(of.facts.strides.data(), of.facts.strides.size()), dtype,
      &view));
  return view;
}

[[nodiscard]] inline MutableTensorView write_view(const Clauses& clauses,
                                                  const Operand& of,
                                                  DType dtype) {
  MutableTensorView view;
  clauses.require_ok(MutableTensorView::make(
      of.tensor.mutable_data_ptr(),
      std::span(of.facts.sizes.data(), of.facts.sizes.size()),
      std::span(of.facts.strides.data(), of.facts.strides.size()), dtype,
      &view));
  return view;
}

}  // namespace xllm_kernel::bridge
