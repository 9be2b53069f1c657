// Threads' choices, and how many processors there are. Starts no thread.
#include "xllm_kernel/threads.h"

#include <algorithm>

#include "simd/core/pool.h"
#include "simd/core/processors.h"

namespace xllm_kernel {

Threads Threads::own(int count) noexcept {
  // Reading files takes longer than most calls that ask.
  static const int available = available_threads();
  return host(count > 0 ? count : available, &simd::run_on_pool, nullptr);
}

void Threads::run(std::int64_t count, Task task, void* context) const noexcept {
  if (run_ != nullptr && this->count() > 1) {
    run_(host_, count, task, context);
    return;
  }
  for (std::int64_t index = 0; index < count; ++index) task(context, index);
}

int available_threads() noexcept {
  return std::max(
      std::min(simd::affinity_count(), simd::quota_count("/proc", "/sys")), 1);
}

}  // namespace xllm_kernel
