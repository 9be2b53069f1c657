// A stand-in for the serving host's own operators: owns schema, implementation
// and fake of xllm_ops::rms_norm. Holds no arithmetic; the vendor's operator
// does the work, as in the host.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <tuple>

namespace {

using VendorRmsNorm = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&,
                                                         const at::Tensor&,
                                                         double);

at::Tensor rms_norm(const at::Tensor& input, const at::Tensor& weight,
                    double eps) {
  // Found at the first call: loading this library needs no vendor.
  static const auto vendor = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("npu::npu_rms_norm", "")
                                 .typed<VendorRmsNorm>();
  return std::get<0>(vendor.call(input, weight, eps));
}

at::Tensor fake_rms_norm(const at::Tensor& input, const at::Tensor& /*weight*/,
                         double /*eps*/) {
  return at::empty_symint(input.sym_sizes(), input.options());
}

}  // namespace

TORCH_LIBRARY(xllm_ops, library) {
  library.def("rms_norm(Tensor input, Tensor weight, float eps) -> Tensor");
}

TORCH_LIBRARY_IMPL(xllm_ops, PrivateUse1, library) {
  library.impl("rms_norm", &rms_norm);
}

TORCH_LIBRARY_IMPL(xllm_ops, Meta, library) {
  library.impl("rms_norm", &fake_rms_norm);
}
