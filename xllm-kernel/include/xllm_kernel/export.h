// Marks the functions that the shared library exports: the public API, for all
// else is compiled hidden. Declares nothing.
#pragma once

#define XLLM_KERNEL_API __attribute__((visibility("default")))
