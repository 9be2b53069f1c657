// A call and nothing else: its own instructions are part of every count.
#include "support/counted_region.h"

xllm_kernel::Status xllm_kernel_counted_region(
    xllm_kernel::Status (*call)(const void*) noexcept,
    const void* argument) noexcept {
  return call(argument);
}
