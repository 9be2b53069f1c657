// Lends torch's own threads to the kernels. Needs torch's stable headers only;
// knows no operator.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "torch/csrc/stable/ops.h"
#include "xllm_kernel/threads.h"

namespace xllm_kernel::bridge {

namespace detail {

inline std::atomic<bool> in_child{false};

}  // namespace detail

// Has children of fork() run on one thread: torch's others are not there, and
// waiting for them would take forever. For whoever prepares a call; the second
// and later calls do nothing.
inline void watch_forks() noexcept {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { detail::in_child.store(true); });
  static_cast<void>(registered);
}

// Only a task that throws makes torch's call fail, and none does.
// NOLINTNEXTLINE(bugprone-exception-escape)
inline void run_on_torch(void* /*host*/, std::int64_t count, Threads::Task task,
                         void* context) noexcept {
  torch::stable::parallel_for(
      0, count, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t index = begin; index < end; ++index) {
          task(context, index);
        }
      });
}

// As many as torch.set_num_threads() allows.
[[nodiscard]] inline Threads torch_threads() {
  if (detail::in_child.load(std::memory_order_relaxed)) return {};
  return Threads::host(static_cast<int>(torch::stable::get_num_threads()),
                       &run_on_torch, nullptr);
}

}  // namespace xllm_kernel::bridge
