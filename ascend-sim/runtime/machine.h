// The state behind Runtime, and the steps that several of its calls share.
// Everything here is guarded by the engine's mutex; Call takes it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/clock.h"
#include "runtime/engine.h"
#include "runtime/memory.h"
#include "runtime/runtime.h"

namespace ascend_sim {

struct Stream {
  std::int32_t id = 0;
  std::int32_t device = 0;
  std::uint32_t component = 0;  // in clocks
  std::uint64_t sequence = 0;   // of the latest task
  Ticks end = 0;                // of the latest task; kNever where it hangs
  Clock clock;                  // what happens before the next task
};

// One record of an event: when, and what happened before.
struct Mark {
  Ticks time = 0;
  Clock clock;
};

struct Event {
  std::uint64_t id = 0;
  std::shared_ptr<const Mark> mark;  // none before the first record
};

// What belongs to a thread. Has no destructor, because libraries call until
// after the destructors of thread-local objects have run.
struct ThreadState {
  std::uint64_t machine = 0;  // whose state this is
  std::int32_t device = 0;
  CaptureMode mode = CaptureMode::kGlobal;
  std::array<char, 512> message{};
};

struct Runtime::Machine final : Engine::Client {
  explicit Machine(Settings from);
  ~Machine() override;

  bool start(const Job& job) override;
  void finish(const Job& job, Status status) override;

  [[nodiscard]] ThreadState& thread() const;
  Status fail(Status status, std::string_view message) const;
  [[nodiscard]] DeviceMemory* memory_of(Address address) const;

  Stream* make_stream(std::int32_t device);
  Status enqueue(Stream& stream, Task task);
  // Moves the clock there and waits until all that is due has run.
  Status wait_until(Engine::Lock& lock, Ticks time, Timeout timeout);
  // The synchronous form of a copy or fill: checked, then run by the caller.
  Status run_on_host(Engine::Lock& lock, const Task& task);
  [[nodiscard]] bool check_operands(const Task& task,
                                    std::string_view when) const;
  void materialize(const Task& task);

  const Settings settings;
  const std::uint64_t serial;  // tells machines of one process apart
  const pid_t process;
  std::vector<std::unique_ptr<DeviceMemory>> memories;
  std::vector<Stream*> default_streams;
  std::unordered_map<const void*, std::unique_ptr<Stream>> streams;
  std::unordered_map<const void*, std::unique_ptr<Event>> events;
  std::unordered_map<void*, std::size_t> host_blocks;
  Clock host;  // what the host knows to be over
  std::uint64_t allocations = 0;
  std::uint64_t events_made = 0;
  std::uint32_t components = 0;
  Status async_error = Status::kOk;
  std::vector<std::string> executed;
  // Last, so that its worker ends before the rest goes.
  Engine engine;
};

// Holds the machine for one call. False in a process forked from the one that
// made the machine: its worker does not exist there, and its mutex may be held
// by a thread that does not either.
class Call final {
 public:
  explicit Call(Runtime::Machine& machine);
  explicit operator bool() const { return lock.owns_lock(); }

  Engine::Lock lock;
};

}  // namespace ascend_sim
