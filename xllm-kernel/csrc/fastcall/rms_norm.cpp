// simd_rms_norm for plain tensors. Checks no argument by itself: what the C++
// API refuses, the operator refuses in its own words.
#include "xllm_kernel/rms_norm.h"

#include <ATen/EmptyTensor.h>

#include "fastcall/guard.h"
#include "torch/threads.h"

namespace xllm_kernel::fastcall {

namespace {

Signature signature{.names = {"input", "weight", "eps"}};

// Work that may take more than one thread; other Python threads run meanwhile,
// and whatever they drop, `held` keeps.
Status run_long(const std::array<at::Tensor, 2>& /*held*/,
                const MutableTensorView& to, const TensorView& from,
                const TensorView& by, double eps) {
  const WithoutGil released;
  return rms_norm(to, from, by, eps, bridge::torch_threads());
}

PyObject* call(PyObject* const* values, Py_ssize_t positional,
               PyObject* keywords) {
  std::array<PyObject*, kMaxParameters> scratch;
  PyObject* const* given =
      arguments(signature, values, positional, keywords, &scratch);
  if (given == nullptr) return nullptr;
  const at::Tensor* input = plain_tensor(given[0]);
  const at::Tensor* weight = plain_tensor(given[1]);
  double eps = 0;
  DType dtype{};
  DType weight_dtype{};
  if (input == nullptr || weight == nullptr || !plain_float(given[2], &eps) ||
      !kernel_dtype(input->scalar_type(), &dtype) ||
      !kernel_dtype(weight->scalar_type(), &weight_dtype)) {
    return nullptr;
  }
  TensorView from;
  TensorView by;
  if (make_view(*input, dtype, &from) != Status::kOk ||
      make_view(*weight, weight_dtype, &by) != Status::kOk) {
    return nullptr;
  }
  at::TensorBase output =
      at::detail::empty_cpu(input->sizes(), input->scalar_type());
  MutableTensorView to;
  if (make_view(output, dtype, &to) != Status::kOk) return nullptr;
  const Status status = from.elements() > kLongElements
                            ? run_long({*input, *weight}, to, from, by, eps)
                            : rms_norm(to, from, by, eps);
  if (status != Status::kOk) return nullptr;
  return THPVariable_Wrap(std::move(output));
}

Entry entry("simd_rms_norm", guarded<call>, &signature);

}  // namespace

}  // namespace xllm_kernel::fastcall
