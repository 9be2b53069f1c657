// What bridges do around a kernel on rows: allocate outputs, make views, spread
// rows over torch's threads. Knows no operator.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "torch/clauses.h"
#include "torch/csrc/stable/ops.h"
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

// Elements that repay waking a thread.
inline constexpr std::int64_t kGrain = 1 << 15;

// Calls `function` for rows 0 .. rows, in one piece or in several at once; the
// cut is free where a row's bits depend on the row alone. Returns a failure of
// one of them, if any.
template <class Function>
[[nodiscard]] Status spread_rows(std::int64_t rows, std::int64_t width,
                                 const Function& function) {
  const std::int64_t grain = std::max<std::int64_t>(kGrain / width, 1);
  if (rows <= grain) return function(RowRange{.begin = 0, .end = rows});
  std::atomic<Status> failure{Status::kOk};
  torch::stable::parallel_for(
      0, rows, grain, [&](std::int64_t begin, std::int64_t end) {
        const Status status = function(RowRange{.begin = begin, .end = end});
        if (status != Status::kOk) failure = status;
      });
  return failure;
}

}  // namespace xllm_kernel::bridge
