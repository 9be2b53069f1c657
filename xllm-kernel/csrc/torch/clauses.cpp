// Clause by clause: what must hold, in the domain's words, and what was seen.
#include "torch/clauses.h"

#include <algorithm>
#include <cfloat>
#include <span>

#include "simd/core/rows.h"
#include "torch/csrc/stable/library.h"

namespace xllm_kernel::bridge {

namespace {

std::string text_of(torch::headeronly::IntHeaderOnlyArrayRef values) {
  return list_text(std::span(values.data(), values.size()));
}

bool is_empty(const TensorFacts& facts) {
  return std::ranges::find(facts.sizes, 0) != facts.sizes.end();
}

// Of a dtype that the kernels have.
std::int64_t element_size(const TensorFacts& facts) {
  return facts.dtype == aoti_torch_dtype_float32() ? 4 : 2;
}

// Bytes from the first that a tensor's elements can touch to past the last.
struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

Range range_of(const Operand& of) {
  if (is_empty(of.facts)) return {};
  std::int64_t reach = 1;
  for (std::size_t axis = 0; axis < of.facts.sizes.size(); ++axis) {
    if (of.facts.sizes[axis] == 1) continue;
    reach += (of.facts.sizes[axis] - 1) * of.facts.strides[axis];
  }
  const auto begin =
      reinterpret_cast<std::uintptr_t>(of.tensor.const_data_ptr());
  return {.begin = begin,
          .end = begin +
                 static_cast<std::uintptr_t>(reach * element_size(of.facts))};
}

}  // namespace

Operand Clauses::operand(std::string_view name,
                         const torch::stable::Tensor& given) const {
  if (!given.defined()) {
    const std::string argument(name);
    refuse(implementation_, argument + " must be a tensor, got NoneType",
           argument + ".type");
  }
  return {name, given};
}

void Clauses::at_least_one_dimension(const Operand& of) const {
  if (of.facts.rank() >= 1) return;
  refuse(implementation_, of.named(" must have at least 1 dimension, got 0"),
         of.named(".rank"));
}

void Clauses::exactly_one_dimension(const Operand& of) const {
  if (of.facts.rank() == 1) return;
  refuse(implementation_,
         of.named(" must have exactly 1 dimension, got ") +
             std::to_string(of.facts.rank()),
         of.named(".rank"));
}

DType Clauses::kernel_dtype(const Operand& of) const {
  const std::int32_t dtype = of.facts.dtype;
  if (dtype == aoti_torch_dtype_bfloat16()) return DType::kBFloat16;
  if (dtype == aoti_torch_dtype_float16()) return DType::kFloat16;
  if (dtype == aoti_torch_dtype_float32()) return DType::kFloat32;
  refuse(implementation_,
         of.named(".dtype must be one of float32, float16, bfloat16, got ") +
             dtype_name(dtype),
         of.named(".dtype"));
}

void Clauses::same_dtype(const Operand& of, const Operand& other) const {
  if (of.facts.dtype == other.facts.dtype) return;
  refuse(implementation_,
         of.named(".dtype must equal ") + other.named(".dtype (") +
             dtype_name(other.facts.dtype) + "), got " +
             dtype_name(of.facts.dtype),
         of.named(".dtype"));
}

void Clauses::same_dtype_or_float32(const Operand& of,
                                    const Operand& other) const {
  if (of.facts.dtype == other.facts.dtype ||
      of.facts.dtype == aoti_torch_dtype_float32()) {
    return;
  }
  refuse(implementation_,
         of.named(".dtype must be float32 or equal ") +
             other.named(".dtype (") + dtype_name(other.facts.dtype) +
             "), got " + dtype_name(of.facts.dtype),
         of.named(".dtype"));
}

void Clauses::same_shape(const Operand& of, const Operand& other) const {
  if (std::ranges::equal(of.facts.sizes, other.facts.sizes)) return;
  refuse(implementation_,
         of.named(".shape must equal ") + other.named(".shape (") +
             text_of(other.facts.sizes) + "), got " + text_of(of.facts.sizes),
         of.named(".shape"));
}

void Clauses::some_width(const Operand& of) const {
  if (of.facts.width() >= 1) return;
  refuse(implementation_,
         of.named(".shape[-1] must be at least 1, got ") +
             std::to_string(of.facts.width()),
         of.named(".width"));
}

void Clauses::same_width(const Operand& of, const Operand& other) const {
  if (of.facts.width() == other.facts.width()) return;
  refuse(implementation_,
         of.named(".shape[0] must equal ") + other.named(".shape[-1] (") +
             std::to_string(other.facts.width()) + "), got " +
             std::to_string(of.facts.width()),
         of.named(".width"));
}

void Clauses::on_cpu(const Operand& of) const {
  if (of.facts.device_type == aoti_torch_device_type_cpu()) return;
  refuse(implementation_,
         of.named(" must be on device cpu, got ") + device_name(of.facts),
         of.named(".device"));
}

void Clauses::same_device(const Operand& of, const Operand& other) const {
  if (of.facts.device_type == other.facts.device_type &&
      of.facts.device_index == other.facts.device_index) {
    return;
  }
  refuse(implementation_,
         of.named(" must be on ") + other.named("'s device (") +
             device_name(other.facts) + "), got " + device_name(of.facts),
         of.named(".device"));
}

void Clauses::unit_stride(const Operand& of) const {
  if (of.facts.width() <= 1 || of.facts.last_stride() == 1) return;
  refuse(implementation_,
         of.named(".stride(-1) must be 1, got ") +
             std::to_string(of.facts.last_stride()) +
             "; pass a contiguous copy",
         of.named(".stride"));
}

void Clauses::rows_apart(const Operand& of) const {
  if (is_empty(of.facts)) return;
  TensorView view;
  require_ok(TensorView::make(
      of.tensor.const_data_ptr(),
      std::span(of.facts.sizes.data(), of.facts.sizes.size()),
      std::span(of.facts.strides.data(), of.facts.strides.size()),
      kernel_dtype(of), &view));
  const std::int64_t row_bytes = of.facts.width() * dtype_size(view.dtype());
  if (simd::RowLayout(view).rows_apart(row_bytes)) return;
  refuse(implementation_,
         of.named("'s rows must lie apart in memory, got strides ") +
             text_of(of.facts.strides) + " for shape " +
             text_of(of.facts.sizes),
         of.named(".rows"));
}

void Clauses::apart(const Operand& of, const Operand& other) const {
  const Range mine = range_of(of);
  const Range theirs = range_of(other);
  const std::uintptr_t begin = std::max(mine.begin, theirs.begin);
  const std::uintptr_t end = std::min(mine.end, theirs.end);
  if (begin >= end) return;
  refuse(implementation_,
         of.named(" must lie apart from ") + other.named(" in memory, got ") +
             std::to_string(end - begin) +
             " bytes that both span; pass a buffer of its own",
         of.named(".apart_from_") + std::string(other.name));
}

void Clauses::not_negative_float32(std::string_view name, double value) const {
  // NaN fails both comparisons.
  const bool inside = value >= 0.0 && value <= static_cast<double>(FLT_MAX);
  if (inside) return;
  refuse(implementation_,
         std::string(name) +
             " must be finite, at least 0 and at most 3.40282e+38, got " +
             number_text(value),
         name);
}

void Clauses::writable(const Operand& of) const {
  if (count_write(of.tensor)) return;
  refuse(implementation_,
         of.named(" must not be an inference tensor outside of inference mode, "
                  "for torch lets nobody write to one there; call it under "
                  "torch.inference_mode()"),
         of.named(".inference"));
}

RowDTypes Clauses::rows_and_weight(const Operand& input,
                                   const Operand& weight) const {
  at_least_one_dimension(input);
  const DType rows = kernel_dtype(input);
  exactly_one_dimension(weight);
  same_dtype_or_float32(weight, input);
  some_width(input);
  same_width(weight, input);
  on_cpu(input);
  same_device(weight, input);
  return {.rows = rows, .weight = kernel_dtype(weight)};
}

void Clauses::require_ok(Status status) const {
  if (status == Status::kOk) return;
  const char* message = simd_level().status == Status::kOk
                            ? status_message(status)
                            : simd_level().message;
  refuse(implementation_, message, "kernel");
}

}  // namespace xllm_kernel::bridge
