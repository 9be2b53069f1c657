// The version that the library was compiled as. Decides nothing.
#include "xllm_kernel/version.h"

namespace xllm_kernel {

const char* version() noexcept { return XLLM_KERNEL_VERSION; }

}  // namespace xllm_kernel
