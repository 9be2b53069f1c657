// How many processors the kernel lets this process use: by its affinity mask,
// and by the time that its control groups grant. Keeps no state.
#pragma once

#include <limits>

namespace xllm_kernel::simd {

// Processors of the calling thread's affinity mask; 1 if that cannot be read.
[[nodiscard]] int affinity_count() noexcept;

inline constexpr int kNoQuota = std::numeric_limits<int>::max();

// Processors' worth of time, rounded up, that the control groups of this
// process and those above it grant (version 2's cpu.max, version 1's
// cpu.cfs_quota_us); kNoQuota where none limits it. `proc` and `sys` are where
// those file systems are mounted, for tests to invent.
[[nodiscard]] int quota_count(const char* proc, const char* sys) noexcept;

}  // namespace xllm_kernel::simd
