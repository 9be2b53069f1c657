// Every kind of Threads that an operator can be given. For tests only.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "xllm_kernel/threads.h"

namespace xllm_kernel::test {

// A host's pool of the simplest kind: a thread a task.
inline void run_on_new_threads(void* host, std::int64_t count,
                               Threads::Task task, void* context) noexcept {
  ++*static_cast<std::atomic<int>*>(host);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (std::int64_t index = 0; index < count; ++index) {
    threads.emplace_back([=] { task(context, index); });
  }
  for (std::thread& thread : threads) thread.join();
}

// A host may run tasks in any order, even on one thread.
inline void run_backwards(void* host, std::int64_t count, Threads::Task task,
                          void* context) noexcept {
  ++*static_cast<std::atomic<int>*>(host);
  for (std::int64_t index = count; index-- > 0;) task(context, index);
}

inline std::vector<Threads> every_kind_of_threads() {
  static std::atomic<int> calls = 0;
  return {Threads(),
          Threads::own(),
          Threads::own(3),
          Threads::own(300),
          Threads::host(1, &run_on_new_threads, &calls),
          Threads::host(3, &run_on_new_threads, &calls),
          Threads::host(3, &run_backwards, &calls)};
}

// Calls body(n) on `count` threads at once, and waits for all.
template <class Body>
void at_once(int count, const Body& body) {
  std::vector<std::thread> callers;
  callers.reserve(static_cast<std::size_t>(count));
  for (int n = 0; n < count; ++n) callers.emplace_back([&body, n] { body(n); });
  for (std::thread& caller : callers) caller.join();
}

}  // namespace xllm_kernel::test
