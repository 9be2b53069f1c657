// Exports of libascendcl that CANN keeps in libruntime: registration and launch
// of kernels, as compiled host stubs call them. No header of CANN's that the
// wheels bring declares them; the signatures were read from the stubs.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "abi/ascendcl/calls.h"
#include "abi/export.h"
#include "launchers/launch.h"
#include "launchers/registry.h"

namespace {

using ascend_sim::DeviceBinary;
using ascend_sim::Registry;
using ascend_sim::Runtime;
using ascend_sim::Status;
using ascend_sim::abi::code;
using ascend_sim::abi::missing;
using ascend_sim::abi::refuse;
using ascend_sim::abi::unsupported;

// The part of CANN's rtArgsEx_t that the stubs fill in.
struct KernelArguments {
  const void* block;
  const void* unused;
  std::uint32_t bytes;
};
static_assert(offsetof(KernelArguments, bytes) == 16);

std::int32_t register_for(const char* function, const DeviceBinary* binary,
                          void** handle) {
  if (binary == nullptr || handle == nullptr) {
    return missing(function, "binary and handle");
  }
  return code(ascend_sim::register_binary(Runtime::get(), Registry::get(),
                                          *binary, handle));
}

}  // namespace

ASCEND_SIM_EXPORT std::int32_t rtRegisterAllKernel(const DeviceBinary* binary,
                                                   void** handle) {
  return register_for("rtRegisterAllKernel", binary, handle);
}

ASCEND_SIM_EXPORT std::int32_t rtDevBinaryRegister(const DeviceBinary* binary,
                                                   void** handle) {
  return register_for("rtDevBinaryRegister", binary, handle);
}

ASCEND_SIM_EXPORT std::int32_t rtDevBinaryUnRegister(void* handle) {
  if (!Registry::get().remove(handle)) {
    return refuse(Status::kInvalidHandle, "rtDevBinaryUnRegister",
                  "no binary is registered under the handle");
  }
  return code(Status::kOk);
}

ASCEND_SIM_EXPORT std::int32_t rtKernelLaunchWithHandle(
    void* handle, std::uint64_t tiling_key, std::uint32_t block_dim,
    const KernelArguments* arguments, const void* /*shared_memory*/,
    void* stream, const void* /*kernel_info*/) {
  if (arguments == nullptr || arguments->block == nullptr) {
    return missing("rtKernelLaunchWithHandle", "the argument block");
  }
  ascend_sim::LaunchRequest request;
  request.binary = handle;
  request.key = tiling_key;
  request.cores = block_dim;
  request.block = {static_cast<const std::byte*>(arguments->block),
                   arguments->bytes};
  request.stream = stream;
  return code(ascend_sim::launch(Runtime::get(), Registry::get(), request));
}

// Memory through which cube and vector cores of one kernel meet. Stubs of such
// kernels put it into the block before they launch; no simulated kernel is of
// that kind, so that the launch then fails by name.
ASCEND_SIM_EXPORT std::int32_t rtGetC2cCtrlAddr(std::uint64_t* address,
                                                std::uint32_t* bytes) {
  if (address == nullptr || bytes == nullptr) {
    return missing("rtGetC2cCtrlAddr", "address and bytes");
  }
  *address = 0;
  *bytes = 0;
  return code(Status::kOk);
}

ASCEND_SIM_EXPORT int mmGetTid() { return gettid(); }

// Linked by the stubs' dumps and by launches that split a kernel over streams
// or name it by a host function. None of them is simulated.
ASCEND_SIM_EXPORT std::int32_t rtFunctionRegister() {
  return unsupported("rtFunctionRegister");
}

ASCEND_SIM_EXPORT std::int32_t rtKernelLaunch() {
  return unsupported("rtKernelLaunch");
}

ASCEND_SIM_EXPORT std::int32_t rtKernelLaunchWithFlagV2() {
  return unsupported("rtKernelLaunchWithFlagV2");
}

ASCEND_SIM_EXPORT std::int32_t rtKernelLaunchWithHandleV2() {
  return unsupported("rtKernelLaunchWithHandleV2");
}

ASCEND_SIM_EXPORT std::int32_t rtMalloc() { return unsupported("rtMalloc"); }

ASCEND_SIM_EXPORT std::int32_t rtRegStreamStateCallback() {
  return unsupported("rtRegStreamStateCallback");
}

ASCEND_SIM_EXPORT std::int32_t rtVectorCoreKernelLaunchWithHandle() {
  return unsupported("rtVectorCoreKernelLaunchWithHandle");
}
