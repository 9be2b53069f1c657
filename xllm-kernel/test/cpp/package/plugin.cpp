// A plugin's one function, over kernels that it links into itself.
#include <xllm_kernel/core.h>

extern "C" const char* plugin_level() { return xllm_kernel::simd_level().name; }
