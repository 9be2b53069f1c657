// xllm_kernel::simd_rms_norm: checks its arguments, allocates the output and
// spreads the rows over torch's own threads. Holds no arithmetic.
#include "xllm_kernel/rms_norm.h"

#include <algorithm>
#include <cfloat>
#include <span>
#include <vector>

#include "torch/csrc/stable/library.h"
#include "torch/csrc/stable/ops.h"
#include "torch/domain.h"
#include "torch/spread.h"

namespace xllm_kernel::bridge {

namespace {

using torch::stable::Tensor;

constexpr Implementation kImplementation{"rms_norm", "cpu.simd.rms_norm"};

bool to_dtype(std::int32_t number, DType* dtype) noexcept {
  if (number == aoti_torch_dtype_bfloat16()) {
    *dtype = DType::kBFloat16;
  } else if (number == aoti_torch_dtype_float16()) {
    *dtype = DType::kFloat16;
  } else if (number == aoti_torch_dtype_float32()) {
    *dtype = DType::kFloat32;
  } else {
    return false;
  }
  return true;
}

// Clause by clause in the order of SIMD_DOMAIN, and with its words.
DType check_types(const TensorFacts& input, const TensorFacts& weight) {
  DType dtype = DType::kFloat32;
  if (input.rank() < 1) {
    refuse(kImplementation, "input must have at least 1 dimension, got 0",
           "input.rank");
  }
  if (!to_dtype(input.dtype, &dtype)) {
    refuse(kImplementation,
           "input.dtype must be one of float32, float16, bfloat16, got " +
               dtype_name(input.dtype),
           "input.dtype");
  }
  if (weight.rank() != 1) {
    refuse(kImplementation,
           "weight must have exactly 1 dimension, got " +
               std::to_string(weight.rank()),
           "weight.rank");
  }
  if (weight.dtype != input.dtype) {
    refuse(kImplementation,
           "weight.dtype must equal input.dtype (" + dtype_name(input.dtype) +
               "), got " + dtype_name(weight.dtype),
           "weight.dtype");
  }
  return dtype;
}

void check_extents_and_devices(const TensorFacts& input,
                               const TensorFacts& weight) {
  if (input.width() < 1) {
    refuse(kImplementation,
           "input.shape[-1] must be at least 1, got " +
               std::to_string(input.width()),
           "input.width");
  }
  if (weight.width() != input.width()) {
    refuse(kImplementation,
           "weight.shape[0] must equal input.shape[-1] (" +
               std::to_string(input.width()) + "), got " +
               std::to_string(weight.width()),
           "weight.width");
  }
  if (input.device_type != aoti_torch_device_type_cpu()) {
    refuse(kImplementation,
           "input must be on device cpu, got " + device_name(input),
           "input.device");
  }
  if (weight.device_type != input.device_type ||
      weight.device_index != input.device_index) {
    refuse(kImplementation,
           "weight must be on input's device (" + device_name(input) +
               "), got " + device_name(weight),
           "weight.device");
  }
}

void check_last_stride(const TensorFacts& tensor, const std::string& name) {
  if (tensor.width() > 1 && tensor.last_stride() != 1) {
    refuse(kImplementation,
           name + ".stride(-1) must be 1, got " +
               std::to_string(tensor.last_stride()) +
               "; pass a contiguous copy",
           name + ".stride");
  }
}

void check_eps(double eps) {
  // NaN fails both comparisons.
  const bool inside = eps >= 0.0 && eps <= static_cast<double>(FLT_MAX);
  if (!inside) {
    refuse(kImplementation,
           "eps must be finite, at least 0 and at most 3.40282e+38, got " +
               number_text(eps),
           "eps");
  }
}

void check_gradient(const Tensor& tensor, const std::string& name) {
  if (needs_gradient(tensor)) {
    refuse(kImplementation,
           name +
               " must not require a gradient in grad mode, for there is no "
               "backward; call it under torch.no_grad()",
           name + ".gradient");
  }
}

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

// Only a fault of this file gets here: the clauses above imply what the kernel
// asks, addresses apart.
void require_ok(Status status) {
  if (status == Status::kOk) return;
  const char* message = simd_level().status == Status::kOk
                            ? status_message(status)
                            : simd_level().message;
  refuse(kImplementation, message, "kernel");
}

template <class View, class Void>
View make_view(Void* base, std::span<const std::int64_t> sizes,
               std::span<const std::int64_t> strides, DType dtype) {
  View view;
  require_ok(View::make(base, sizes, strides, dtype, &view));
  return view;
}

Tensor simd_rms_norm(const Tensor& input, const Tensor& weight, double eps) {
  const TensorFacts in(input);
  const TensorFacts scale(weight);
  const DType dtype = check_types(in, scale);
  check_extents_and_devices(in, scale);
  check_last_stride(in, "input");
  check_last_stride(scale, "weight");
  check_eps(eps);
  check_gradient(input, "input");
  check_gradient(weight, "weight");

  const std::vector<std::int64_t> strides = contiguous_strides(in.sizes);
  AtenTensorHandle handle = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      in.rank(), in.sizes.data(), strides.data(), in.dtype, in.device_type,
      in.device_index, &handle));
  Tensor output(handle);
  const std::int64_t rows = input.numel() / in.width();
  if (rows == 0) return output;

  const std::span sizes(in.sizes.data(), in.sizes.size());
  const auto to = make_view<MutableTensorView>(output.mutable_data_ptr(), sizes,
                                               strides, dtype);
  const auto from = make_view<TensorView>(
      input.const_data_ptr(), sizes,
      std::span(in.strides.data(), in.strides.size()), dtype);
  const auto by = make_view<TensorView>(
      weight.const_data_ptr(),
      std::span(scale.sizes.data(), scale.sizes.size()),
      std::span(scale.strides.data(), scale.strides.size()), dtype);

  // A row's bits depend on the row alone, so the cut is free.
  require_ok(spread_rows(rows, in.width(), [&](RowRange range) {
    return rms_norm(to, from, by, eps, range);
  }));
  return output;
}

}  // namespace

}  // namespace xllm_kernel::bridge

STABLE_TORCH_LIBRARY_FRAGMENT(xllm_kernel, library) {
  library.def(
      "simd_rms_norm(Tensor input, Tensor weight, float eps) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(xllm_kernel, CPU, library) {
  library.impl("simd_rms_norm", TORCH_BOX(&xllm_kernel::bridge::simd_rms_norm));
}

// Every other backend gets here, and from the same checks the named error
// instead of the dispatcher's.
STABLE_TORCH_LIBRARY_IMPL(xllm_kernel, CompositeExplicitAutograd, library) {
  library.impl("simd_rms_norm", TORCH_BOX(&xllm_kernel::bridge::simd_rms_norm));
}
