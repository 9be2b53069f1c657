// xllm_kernel::simd_level: the process's SIMD level, chosen when first asked.
// Knows no operator.
#include <stdexcept>
#include <string>

#include "torch/csrc/stable/library.h"
#include "torch/threads.h"
#include "xllm_kernel/core.h"

namespace {

// Decides the level while the caller prepares, so that no call does, and says
// what is wrong with XLLM_KERNEL_SIMD_LEVEL.
std::string simd_level() {
  const xllm_kernel::SimdLevel& level = xllm_kernel::simd_level();
  if (level.status != xllm_kernel::Status::kOk) {
    throw std::runtime_error(level.message);
  }
  xllm_kernel::bridge::watch_forks();
  return level.name;
}

}  // namespace

// A fragment: every operator's bridge adds to the same namespace.
STABLE_TORCH_LIBRARY_FRAGMENT(xllm_kernel, library) {
  library.def("simd_level() -> str");
}

STABLE_TORCH_LIBRARY_IMPL(xllm_kernel, CompositeExplicitAutograd, library) {
  library.impl("simd_level", TORCH_BOX(&simd_level));
}
