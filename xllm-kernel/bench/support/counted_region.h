// The function that callgrind counts in and below, found by its name.
#pragma once

#include "xllm_kernel/core.h"

extern "C" {

// In a file of its own, so that it stays a function that is called.
xllm_kernel::Status xllm_kernel_counted_region(
    xllm_kernel::Status (*call)(const void*) noexcept,
    const void* argument) noexcept;
}
