// xllm_kernel::xlite_processor: which processor this is, and whether launchers
// work on it. Launches nothing.
#include "xlite/processor.h"

#include <acl/acl.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "torch_npu/csrc/core/npu/NPUFunctions.h"

namespace xllm_kernel::xlite {

namespace {

// Elsewhere the libraries register nothing, or the kernel's body is empty.
constexpr std::array<std::string_view, 12> kSupported = {
    "Ascend910B1",    "Ascend910B2",    "Ascend910B2C",   "Ascend910B3",
    "Ascend910B4",    "Ascend910B4-1",  "Ascend910_9391", "Ascend910_9392",
    "Ascend910_9381", "Ascend910_9382", "Ascend910_9372", "Ascend910_9362"};

std::uint32_t vector_cores_of(int device) {
  std::int64_t cores = 0;
  const aclError error = aclrtGetDeviceInfo(
      static_cast<std::uint32_t>(device), ACL_DEV_ATTR_VECTOR_CORE_NUM, &cores);
  if (error != ACL_SUCCESS || cores < 1 ||
      !std::in_range<std::uint32_t>(cores)) {
    throw std::runtime_error(
        "xlite: aclrtGetDeviceInfo must give the number of vector cores of "
        "device " +
        std::to_string(device) + ", got status " + std::to_string(error) +
        " and " + std::to_string(cores) + " cores; check the device's driver");
  }
  return static_cast<std::uint32_t>(cores);
}

Processor ask() {
  const char* name = aclrtGetSocName();
  Processor found;
  found.soc = name == nullptr ? "an unknown one" : name;
  if (std::ranges::find(kSupported, found.soc) == kSupported.end()) {
    return found;
  }
  for (int device = 0; device < c10_npu::device_count(); ++device) {
    found.vector_cores.push_back(vector_cores_of(device));
  }
  return found;
}

// What a receipt says; an error where launchers would write nothing.
std::string describe() {
  const Processor& found = processor();
  if (!found.supported()) {
    throw std::runtime_error("the processor must be one of " +
                             supported_socs() + ", got " + found.soc +
                             ", on which launchers report success and write "
                             "nothing");
  }
  return found.soc + " with " + std::to_string(found.vector_cores.front()) +
         " vector cores";
}

}  // namespace

const Processor& processor() {
  static const Processor found = ask();
  return found;
}

std::string supported_socs() {
  std::string list;
  for (const std::string_view name : kSupported) {
    list.append(list.empty() ? "" : ", ").append(name);
  }
  return list;
}

}  // namespace xllm_kernel::xlite

// A fragment: every operator's bridge adds to the same namespace.
TORCH_LIBRARY_FRAGMENT(xllm_kernel, library) {
  library.def("xlite_processor() -> str");
}

TORCH_LIBRARY_IMPL(xllm_kernel, CompositeExplicitAutograd, library) {
  library.impl("xlite_processor", &xllm_kernel::xlite::describe);
}
