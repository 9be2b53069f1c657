// One pool a process: workers started on demand, one job at a time. A caller
// never waits for a worker that has not begun, so that a sleeping or switched
// off worker costs nothing but its help.
#include "simd/core/pool.h"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <new>
#include <thread>

namespace xllm_kernel::simd {

namespace {

// About 50 us of looking for work before a worker sleeps: long enough for the
// next operator of a model, too short to be seen as load.
constexpr int kSpins = 2000;

inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

class Pool final {
 public:
  // In a child of fork() no worker is left: the caller does all by itself. If
  // the parent forked in the middle of a job, the pool stays taken for good,
  // which comes to the same.
  void run(std::int64_t count, Threads::Task task, void* context) noexcept {
    if (taken_.test_and_set(std::memory_order_acquire)) {
      for (std::int64_t index = 0; index < count; ++index) task(context, index);
      return;
    }
    start_workers(count - 1);
    task_ = task;
    context_ = context;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    open_.store(true, std::memory_order_seq_cst);
    job_.fetch_add(1, std::memory_order_seq_cst);
    job_.notify_all();
    take_tasks();
    open_.store(false, std::memory_order_seq_cst);
    for (int spins = 0; active_.load(std::memory_order_seq_cst) != 0; ++spins) {
      if (spins < kSpins) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
    taken_.clear(std::memory_order_release);
  }

 private:
  void take_tasks() noexcept {
    while (true) {
      const std::int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= count_) return;
      task_(context_, index);
    }
  }

  void start_workers(std::int64_t wanted) noexcept {
    // Signals are the host's affair: workers are born with all blocked.
    sigset_t all;
    sigset_t before;
    if (workers_ >= wanted) return;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
    while (workers_ < wanted) {
      pthread_t thread{};
      const auto body = [](void* pool) -> void* {
        static_cast<Pool*>(pool)->serve();
        return nullptr;
      };
      // One that cannot be started is missed by nobody.
      if (pthread_create(&thread, nullptr, body, this) != 0) break;
      pthread_detach(thread);
      ++workers_;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  [[noreturn]] void serve() noexcept {
    std::uint32_t seen = 0;
    while (true) {
      seen = wait_for_job(seen);
      // Announced before `open_` is read, and the caller closes before it reads
      // `active_`: one of the two sees the other.
      active_.fetch_add(1, std::memory_order_seq_cst);
      if (open_.load(std::memory_order_seq_cst)) take_tasks();
      active_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

  // The number of a job other than `seen`.
  std::uint32_t wait_for_job(std::uint32_t seen) noexcept {
    for (int spins = 0; spins < kSpins; ++spins) {
      const std::uint32_t job = job_.load(std::memory_order_acquire);
      if (job != seen) return job;
      pause();
    }
    job_.wait(seen, std::memory_order_acquire);
    return job_.load(std::memory_order_acquire);
  }

  std::atomic_flag taken_;
  std::atomic<bool> open_{false};
  std::atomic<int> active_{0};
  std::atomic<std::uint32_t> job_{0};
  std::atomic<std::int64_t> next_{0};
  // Written by who has taken the pool, while no worker is active.
  std::int64_t workers_ = 0;
  std::int64_t count_ = 0;
  Threads::Task task_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace

void run_on_pool(void* /*host*/, std::int64_t count, Threads::Task task,
                 void* context) noexcept {
  // Never destroyed: detached workers use it until the process ends.
  alignas(Pool) static std::byte storage[sizeof(Pool)];
  static Pool* const pool = new (storage) Pool;
  pool->run(count, task, context);
}

}  // namespace xllm_kernel::simd
