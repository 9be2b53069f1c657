// Virtual time and the worker that executes due tasks in its order.
// Knows nothing of operands, races or graphs: a client checks those.
//
// Why one worker for all streams. Tasks run one at a time, in the order of
// (start, number of submission). A task that is submitted starts after the
// clock of its submission, and whatever ran before had started by then, so no
// later call can put a task before one that ran already: the order is a
// function of the calls and of the seed alone, however threads are scheduled.
// Workers that run at once would give up just that. Nothing is lost by it: the
// streams' interleavings come from the drawn durations, an overlap of two
// bodies would show only in programs that race, and those the race detector
// finds without an overlap. Host and device still overlap for real.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "runtime/clock.h"
#include "runtime/components.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace ascend_sim {

using Body = std::shared_ptr<const std::function<Status()>>;

enum class Fate : std::uint8_t { kRuns, kFails, kHangs };

// A task on its way: where it was submitted and when it runs.
struct Job {
  Ticks start = 0;
  Ticks end = 0;
  std::uint64_t number = 0;          // of the submission
  std::shared_ptr<const Task> task;  // without its body, which may own much
  Body body;
  std::int32_t device = 0;
  std::int32_t stream = 0;  // that it shows as
  std::int32_t owner = 0;   // the stream that it was submitted or replayed on
  std::uint64_t sequence = 0;  // on its stream
  std::uint32_t graph = 0;     // 0: none
  std::uint32_t thread = 0;    // the host's, which submitted or replayed it
  Fate fate = Fate::kRuns;
  // Of the block behind each access at submission; 0 if there was none.
  std::vector<std::uint64_t> serials;
};

class Engine final {
 public:
  class Client {
   public:
    virtual ~Client() = default;
    // Both are called on the worker, with the mutex held.
    // Says whether the body may run.
    virtual bool start(const Job& job) = 0;
    virtual void finish(const Job& job, Status status) = 0;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Timeout = Runtime::Timeout;

  Engine(std::uint64_t seed, Client& client) : seed_(seed), client_(client) {}
  ~Engine() { stop(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Guards the engine and whatever its owner keeps beside it.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }

  // Lets the running body end and drops the rest; who waits, then or later,
  // returns at once. Not while holding the mutex.
  void stop();

  // All below: the mutex is held.
  [[nodiscard]] Ticks now() const { return now_; }
  Ticks tick();
  // Moves the host's clock, and so releases tasks; never back, never to
  // kNever.
  void advance(Ticks to);
  // When a task begins that could begin at a time, and when it ends: a delay
  // of at most 3 ticks, and 1 to 64 ticks, mostly few.
  struct Span {
    Ticks start = 0;
    Ticks end = 0;
  };
  [[nodiscard]] Span draw(Ticks ready, const Component& component) const;
  void push(Job job);
  // Waits until all due tasks have run; false after the timeout.
  bool drain(Lock& lock, Timeout timeout);
  // Lets all run that does not hang, then waits for the time given: what a
  // host sees that waits for a stream that hangs.
  void wait_in_vain(Lock& lock, std::chrono::milliseconds time);
  // Removes the tasks of a stream that have not begun.
  void drop(std::int32_t owner);

 private:
  struct Earlier {
    bool operator()(const Job& a, const Job& b) const {
      return a.start != b.start ? a.start < b.start : a.number < b.number;
    }
  };

  [[nodiscard]] bool due(Ticks by) const;
  void work();
  void run_first(Lock& lock);

  const std::uint64_t seed_;
  Client& client_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable ran_;
  Ticks now_ = 0;
  std::uint64_t submissions_ = 0;
  std::set<Job, Earlier> jobs_;
  std::optional<Ticks> running_;  // the start of the task that runs
  bool stopped_ = false;
  std::thread worker_;
};

}  // namespace ascend_sim
