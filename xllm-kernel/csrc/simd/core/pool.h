// The library's own threads, for hosts that have no pool to lend. Runs tasks;
// knows nothing of rows.
#pragma once

#include <cstdint>

#include "xllm_kernel/threads.h"

namespace xllm_kernel::simd {

// Threads::Run over the process's pool; `host` is not looked at.
void run_on_pool(void* host, std::int64_t count, Threads::Task task,
                 void* context) noexcept;

}  // namespace xllm_kernel::simd
