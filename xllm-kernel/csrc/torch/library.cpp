// Schemas of the operators over csrc/simd. A fragment: other libraries of the
// package add to the same namespace. Registers no kernel of an operator.
#include "torch/csrc/stable/library.h"

#include <stdexcept>
#include <string>

#include "xllm_kernel/core.h"

namespace {

// Decides the level while the caller prepares, so that no call does, and says
// what is wrong with XLLM_KERNEL_SIMD_LEVEL.
std::string simd_level() {
  const xllm_kernel::SimdLevel& level = xllm_kernel::simd_level();
  if (level.status != xllm_kernel::Status::kOk) {
    throw std::runtime_error(level.message);
  }
  return level.name;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(xllm_kernel, library) {
  library.def("simd_level() -> str");
  library.def(
      "simd_rms_norm(Tensor input, Tensor weight, float eps) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(xllm_kernel, CompositeExplicitAutograd, library) {
  library.impl("simd_level", TORCH_BOX(&simd_level));
}
