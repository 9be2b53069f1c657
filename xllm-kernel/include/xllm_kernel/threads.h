// On which threads an operator may run: the caller's alone, those of a pool
// that the host owns, or the library's own. Starts none by itself.
#pragma once

#include <cstdint>

#include "xllm_kernel/export.h"

namespace xllm_kernel {

// The last argument of every operator. Whatever it says, results have the same
// bits, and work too small to gain from another thread stays on the caller's.
class Threads final {
 public:
  using Task = void (*)(void* context, std::int64_t index) noexcept;

  // What a host's pool must do: call task(context, i) once for each i in
  // [0, count), on whatever threads it likes, and return when all have
  // returned. Calls may come from several threads at once. `host` is passed
  // through. It must not throw.
  using Run = void (*)(void* host, std::int64_t count, Task task,
                       void* context) noexcept;

  // The calling thread alone.
  constexpr Threads() noexcept = default;

  // A host's pool of `count` threads, the calling one included.
  [[nodiscard]] static constexpr Threads host(int count, Run run,
                                              void* host) noexcept {
    Threads threads;
    threads.count_ = count;
    threads.run_ = run;
    threads.host_ = host;
    return threads;
  }

  // The library's own pool, shared by the process, at most `count` of it and
  // the caller included; 0 means available_threads(), asked once. Its threads
  // start at the first work that needs them, and sleep between calls that are
  // far apart. A call that finds the pool at work for another runs on its own
  // thread, and so does every call in a child of fork().
  [[nodiscard]] XLLM_KERNEL_API static Threads own(int count = 0) noexcept;

  // At least 1.
  [[nodiscard]] constexpr int count() const noexcept {
    return count_ < 1 ? 1 : count_;
  }

  // Runs as `Run` says; with a count of 1, on this thread in order.
  XLLM_KERNEL_API void run(std::int64_t count, Task task,
                           void* context) const noexcept;

 private:
  int count_ = 1;
  Run run_ = nullptr;
  void* host_ = nullptr;
};

// Processors that this process may use: those of its affinity mask, but no more
// than its control groups grant it time for. At least 1; read anew at each
// call.
[[nodiscard]] XLLM_KERNEL_API int available_threads() noexcept;

}  // namespace xllm_kernel
