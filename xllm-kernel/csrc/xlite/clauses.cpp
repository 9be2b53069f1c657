// Clause by clause: what must hold, in the domain's words, and what was seen.
#include "xlite/clauses.h"

#include <acl/acl.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <span>

#include "torch_npu/csrc/core/npu/NPUFormat.h"
#include "xlite/processor.h"
#include "xlite/rows.h"

namespace xllm_kernel::xlite {

namespace {

// Of float32: a vector register's, and what 24 bytes a lane leave of a core's
// buffer.
constexpr std::int64_t kVector = 64;
constexpr std::int64_t kMaxWidth = 8192;
constexpr std::int64_t kMaxCount = 4294967295;

struct Format {
  std::int64_t number;
  std::string_view name;
};

// What torch_npu calls a plain tensor of one or two, four, three, five
// dimensions.
constexpr std::array<Format, 4> kPlain = {{{ACL_FORMAT_ND, "ND"},
                                           {ACL_FORMAT_NCHW, "NCHW"},
                                           {ACL_FORMAT_NCL, "NCL"},
                                           {ACL_FORMAT_NCDHW, "NCDHW"}}};
constexpr std::array<Format, 7> kOther = {
    {{ACL_FORMAT_NHWC, "NHWC"},
     {ACL_FORMAT_NC1HWC0, "NC1HWC0"},
     {ACL_FORMAT_FRACTAL_Z, "FRACTAL_Z"},
     {ACL_FORMAT_NDHWC, "NDHWC"},
     {ACL_FORMAT_FRACTAL_NZ, "FRACTAL_NZ"},
     {ACL_FORMAT_NDC1HWC0, "NDC1HWC0"},
     {ACL_FRACTAL_Z_3D, "FRACTAL_Z_3D"}}};

std::string format_name(std::int64_t number) {
  for (const Format& format : kOther) {
    if (format.number == number) return std::string(format.name);
  }
  return "number " + std::to_string(number);
}

// As str(tensor.dtype) without "torch.".
std::string dtype_name(const at::Tensor& tensor) {
  return std::string(c10::getDtypeNames(tensor.scalar_type()).first);
}

std::string list_text(at::IntArrayRef values) {
  return bridge::list_text(std::span(values.data(), values.size()));
}

}  // namespace

void Clauses::tensor(const Operand& of) const {
  if (!of.tensor.defined()) {
    refuse(of.named(" must be a tensor, got NoneType"), of.named(".type"));
  }
  if (c10::GradMode::is_enabled() && of.tensor.requires_grad()) {
    refuse(of.named(" must not require a gradient in grad mode, for there is "
                    "no backward; call it under torch.no_grad()"),
           of.named(".gradient"));
  }
}

void Clauses::at_least_one_dimension(const Operand& of) const {
  if (of.tensor.dim() >= 1) return;
  refuse(of.named(" must have at least 1 dimension, got 0"), of.named(".rank"));
}

void Clauses::exactly_one_dimension(const Operand& of) const {
  if (of.tensor.dim() == 1) return;
  refuse(of.named(" must have exactly 1 dimension, got ") +
             std::to_string(of.tensor.dim()),
         of.named(".rank"));
}

void Clauses::half_precision(const Operand& of) const {
  const at::ScalarType dtype = of.tensor.scalar_type();
  if (dtype == at::kHalf || dtype == at::kBFloat16) return;
  refuse(of.named(".dtype must be one of float16, bfloat16, got ") +
             dtype_name(of.tensor),
         of.named(".dtype"));
}

void Clauses::same_dtype(const Operand& of, const Operand& other) const {
  if (of.tensor.scalar_type() == other.tensor.scalar_type()) return;
  refuse(of.named(".dtype must equal ") + other.named(".dtype (") +
             dtype_name(other.tensor) + "), got " + dtype_name(of.tensor),
         of.named(".dtype"));
}

void Clauses::width_in_vectors(const Operand& of) const {
  const std::int64_t width = of.tensor.size(-1);
  if (width >= kVector && width <= kMaxWidth && width % kVector == 0) return;
  refuse(of.named(".shape[-1] must be a multiple of ") +
             std::to_string(kVector) + " from " + std::to_string(kVector) +
             " to " + std::to_string(kMaxWidth) + ", got " +
             std::to_string(width),
         of.named(".width"));
}

void Clauses::same_width(const Operand& of, const Operand& other) const {
  if (of.tensor.size(-1) == other.tensor.size(-1)) return;
  refuse(of.named(".shape[0] must equal ") + other.named(".shape[-1] (") +
             std::to_string(other.tensor.size(-1)) + "), got " +
             std::to_string(of.tensor.size(-1)),
         of.named(".width"));
}

void Clauses::on_npu(const Operand& of) const {
  if (of.tensor.device().is_privateuseone()) return;
  refuse(of.named(" must be on device npu, got ") + of.tensor.device().str(),
         of.named(".device"));
}

void Clauses::same_device(const Operand& of, const Operand& other) const {
  if (of.tensor.device() == other.tensor.device()) return;
  refuse(of.named(" must be on ") + other.named("'s device (") +
             other.tensor.device().str() + "), got " + of.tensor.device().str(),
         of.named(".device"));
}

void Clauses::plain_format(const Operand& of) const {
  const std::int64_t number = at_npu::native::get_npu_format(of.tensor);
  if (std::ranges::find(kPlain, number, &Format::number) != kPlain.end()) {
    return;
  }
  refuse(of.named("'s format must be one of ND, NCHW, NCL, NCDHW, got ") +
             format_name(number),
         of.named(".format"));
}

void Clauses::countable(const Operand& of) const {
  if (of.tensor.numel() > kMaxCount) {
    refuse(of.named(" must have at most ") + std::to_string(kMaxCount) +
               " elements, got " + std::to_string(of.tensor.numel()),
           of.named(".elements"));
  }
  // Rows that lie otherwise are copied, and then count as elements.
  const std::optional<std::int64_t> step = row_step(of.tensor);
  const std::int64_t rows = row_count(of.tensor);
  if (!step || rows == 0) return;
  const std::int64_t reach = (rows - 1) * *step + of.tensor.size(-1);
  if (reach <= kMaxCount) return;
  refuse(of.named("'s rows must reach over at most ") +
             std::to_string(kMaxCount) + " elements of memory, got " +
             std::to_string(reach) + " by strides " +
             list_text(of.tensor.strides()) + " for shape " +
             list_text(of.tensor.sizes()) + "; pass a contiguous copy",
         of.named(".reach"));
}

void Clauses::not_negative_float32(std::string_view name, double value) const {
  // NaN fails both comparisons.
  if (value >= 0.0 && value <= static_cast<double>(FLT_MAX)) return;
  refuse(std::string(name) +
             " must be finite, at least 0 and at most 3.40282e+38, got " +
             bridge::number_text(value),
         name);
}

void Clauses::supported_processor() const {
  if (processor().supported()) return;
  refuse("the processor must be one of " + supported_socs() + ", got " +
             processor().soc +
             ", on which launchers report success and write nothing",
         "processor");
}

void Clauses::rows_and_weight(const Operand& input,
                              const Operand& weight) const {
  tensor(input);
  tensor(weight);
  at_least_one_dimension(input);
  half_precision(input);
  exactly_one_dimension(weight);
  same_dtype(weight, input);
  width_in_vectors(input);
  same_width(weight, input);
  on_npu(input);
  same_device(weight, input);
  plain_format(input);
  plain_format(weight);
  countable(input);
}

}  // namespace xllm_kernel::xlite
