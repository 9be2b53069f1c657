// The state behind Runtime, and the steps that several of its calls share.
// Everything here is guarded by the engine's mutex; Call takes it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/capture.h"
#include "runtime/clock.h"
#include "runtime/components.h"
#include "runtime/engine.h"
#include "runtime/faults.h"
#include "runtime/memory.h"
#include "runtime/races.h"
#include "runtime/reports.h"
#include "runtime/runtime.h"
#include "runtime/trace.h"

namespace ascend_sim {

struct Stream {
  std::int32_t id = 0;
  std::int32_t device = 0;
  Component component;
  std::uint64_t sequence = 0;  // of the latest task
  Ticks end = 0;               // of the latest task; kNever where it hangs
  Clock clock;                 // what happens before the next task
  StreamCapture capture;
};

// One record of an event: when, and what happened before.
struct Mark {
  Ticks time = 0;
  Clock clock;
};

struct Event {
  std::uint64_t id = 0;
  std::shared_ptr<const Mark> mark;  // none before the first record
  EventCapture capture;              // beside the mark: a capture leaves it
};

// What belongs to a thread. Has no destructor, because libraries call until
// after the destructors of thread-local objects have run.
struct ThreadState {
  std::uint64_t machine = 0;  // whose state this is
  std::uint32_t number = 0;   // for traces
  std::int32_t device = 0;
  CaptureMode mode = CaptureMode::kGlobal;
  std::array<char, 512> message{};
};

struct Runtime::Machine final : Engine::Client {
  explicit Machine(Settings from);
  ~Machine() override;

  // ---- machine.cpp: threads, handles, what is kept for readers
  [[nodiscard]] ThreadState& thread() const;
  Status fail(Status status, std::string_view message) const;
  [[nodiscard]] Stream* make_stream(std::int32_t device);
  // Null, or a handle that is not alive, gives a message and kInvalidHandle.
  [[nodiscard]] Status known(const Stream* stream, std::string_view call) const;
  [[nodiscard]] Status known(const Event* event, std::string_view call) const;
  // Likewise, and the stream must be of the thread's device.
  [[nodiscard]] Status usable(const Stream* stream,
                              std::string_view call) const;
  [[nodiscard]] Status usable(const Event* event, const Stream* stream,
                              std::string_view call) const;
  // Likewise, and the event must not be in a capture.
  [[nodiscard]] Status ready(const Event* event, std::string_view call) const;
  void note(std::string name, std::string category, Notes notes = {});
  [[nodiscard]] static Notes names_of(const Event& event, const Stream& stream);
  // Stops the engine, writes the trace, and tells of reports nobody took; says
  // whether there were any.
  bool finish_process();

  // ---- operands.cpp: addresses, blocks, accesses
  [[nodiscard]] DeviceMemory* memory_of(Address address) const;
  [[nodiscard]] bool is_pinned(Address address, std::size_t bytes) const;
  // The serial number of the live block that holds the access, 1 for pinned
  // host memory, 0 if there is none.
  [[nodiscard]] std::uint64_t serial_of(const Access& access) const;
  // "0x200 of device 0": offsets, so that a program says the same each time.
  [[nodiscard]] std::string place_of(Address address) const;
  [[nodiscard]] std::string describe(const Access& access) const;
  // Reports an access outside of every live block.
  void report_outside(const std::string& who, const std::string& key,
                      const Access& access);
  void report_races(const std::vector<Races::Site>& earlier,
                    const std::string& who, const std::string& key,
                    const Access& access);
  // Reports tasks that use a block and are not known to be over as it goes.
  void report_freed(const Access& block);
  void materialize(const Task& task);

  // ---- submission.cpp: from a task to its end
  Status submit(Stream& stream, Task task);
  // Gives a job its times, and checks its operands and its races.
  // Gives its end.
  Ticks schedule(Job job, Component& component, Clock& clock, Ticks after);
  bool start(const Job& job) override;
  void finish(const Job& job, Status status) override;
  // Moves the clock there and waits until all that is due has run.
  Status wait_until(Engine::Lock& lock, Ticks time, Timeout timeout);
  // Likewise, and the host knows the clock's past to be over then.
  Status wait_for(Engine::Lock& lock, Ticks time, const Clock& clock,
                  Timeout timeout);
  Status synchronize(Engine::Lock& lock, Stream& stream, Timeout timeout);
  // A copy or fill by the calling thread.
  Status run_on_host(Engine::Lock& lock, const Task& task);

  // ---- capture.cpp, graph.cpp
  [[nodiscard]] Capture* find_capture(std::uint64_t id) const;
  [[nodiscard]] Capture* capture_of(const Stream& stream) const;
  // Whether the capture's modes let this thread do what blocks.
  [[nodiscard]] bool may_block() const;
  Status capture_task(Stream& stream, Task task);
  void capture_record(Stream& stream, Event& event);
  Status capture_wait(Stream& stream, Event& event);
  void join_capture(Capture& capture, Stream& stream);
  [[nodiscard]] Status check_capture(const Capture& capture) const;
  // Lets its streams go; a failed capture takes its graph along.
  void close_capture(Capture& capture, bool keep_graph);
  [[nodiscard]] bool is_capturing(const Graph& graph) const;
  [[nodiscard]] bool is_capturing(const Event& event) const {
    return find_capture(event.capture.id) != nullptr;
  }
  void replay(Graph& graph, Stream& stream);
  void drop_graph(Graph& graph);

  const Settings settings;
  const std::uint64_t serial;  // tells machines of one process apart
  const pid_t process;
  std::vector<std::unique_ptr<DeviceMemory>> memories;
  struct Pinned {
    void* pointer = nullptr;
    std::size_t bytes = 0;
  };
  std::map<Address, Pinned> pinned;  // by where they begin
  std::uint64_t allocations = 1;     // serial numbers; 1 is pinned memory's
  std::vector<Stream*> default_streams;
  std::unordered_map<const void*, std::unique_ptr<Stream>> streams;
  std::unordered_map<const void*, std::unique_ptr<Event>> events;
  std::unordered_map<const void*, std::unique_ptr<Graph>> graphs;
  std::unordered_map<std::uint64_t, std::unique_ptr<Capture>> captures;
  std::int32_t streams_made = 0;
  std::uint64_t events_made = 0;
  std::uint32_t graphs_made = 0;
  std::uint64_t captures_made = 0;
  Clock host;  // what the host knows to be over
  Status async_error = Status::kOk;
  Components components;
  Faults faults;
  Races races;
  Reports reports;
  Trace trace;
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
