// Keeps threads on processors of their own while they are measured together.
#pragma once

#include <sched.h>

#include <mutex>

namespace xllm_kernel::ceilings {

// The processors of one measurement's threads. A thread that is started by one
// that slept just before is often put beside it, and stays there until a tick
// of the scheduler moves it: for some milliseconds both run at half their
// speed.
class Places final {
 public:
  // Takes the calling thread's processor. Where that is taken and another may
  // be had, it goes there first, and keeps off those taken for as long as it
  // lives: for threads that end with the measurement.
  void take() noexcept {
    const std::scoped_lock lock(mutex_);
    if (taken(::sched_getcpu())) go_elsewhere();
    const int here = ::sched_getcpu();
    if (here >= 0 && here < CPU_SETSIZE) CPU_SET(here, &taken_);
  }

 private:
  [[nodiscard]] bool taken(int processor) const noexcept {
    return processor >= 0 && processor < CPU_SETSIZE &&
           CPU_ISSET(processor, &taken_) != 0;
  }

  void go_elsewhere() const noexcept {
    cpu_set_t free;
    if (::sched_getaffinity(0, sizeof free, &free) != 0) return;
    for (int n = 0; n < CPU_SETSIZE; ++n) {
      if (taken(n)) CPU_CLR(n, &free);
    }
    if (CPU_COUNT(&free) > 0) ::sched_setaffinity(0, sizeof free, &free);
  }

  std::mutex mutex_;
  cpu_set_t taken_{};
};

}  // namespace xllm_kernel::ceilings
