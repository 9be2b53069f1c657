// The simulated machine behind every library: devices, memory, streams, events,
// graphs. Knows no operator and no C symbol.
//
// Time is virtual. The host's clock advances by a tick with each call that
// submits or asks. A submitted task can begin, in virtual time, when its stream
// and all that it waits for are done; it begins after a small delay and takes
// some ticks, both drawn from (seed, stream, number of the task). Start and end
// are thus known at submission; a worker executes tasks in the order of their
// starts, as soon as the host's clock has passed them, while the host goes on.
// A host that waits moves its clock to the end of what it waits for. So the
// device lags behind the host by delays that the seed decides, whoever forgets
// to wait reads what was there before, and the same calls with the same seed
// give the same schedule.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/settings.h"
#include "runtime/status.h"
#include "runtime/task.h"

namespace ascend_sim {

struct Stream;
struct Event;
struct Graph;

enum class CaptureMode : std::uint8_t { kGlobal, kThreadLocal, kRelaxed };
enum class CaptureState : std::uint8_t { kNone, kActive, kInvalidated };

// Something that a correct program does not do: a race, a use of freed memory,
// an operand outside of every allocation, a stray free.
struct Report {
  std::string kind;  // "race", "use-after-free", "out-of-bounds", ...
  std::string text;  // one sentence with both sites
};

class Runtime final {
 public:
  // The process's, made from the environment at first use and never destroyed:
  // libraries call into it until the very end.
  static Runtime& get();

  explicit Runtime(Settings settings);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] const Settings& settings() const;

  // ---- devices; the current one belongs to the calling thread
  [[nodiscard]] Status set_device(std::int32_t device);
  [[nodiscard]] std::int32_t device() const;

  // ---- memory
  // Poisoned with 0xff bytes: NaN in every floating dtype.
  [[nodiscard]] Status allocate(std::size_t bytes, Address* address);
  [[nodiscard]] Status free(Address address);
  [[nodiscard]] Status allocate_host(std::size_t bytes, void** pointer);
  [[nodiscard]] Status free_host(void* pointer);
  struct MemoryUse {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
  };
  [[nodiscard]] MemoryUse memory_use() const;
  // The device that an address belongs to, or none for the host's memory.
  [[nodiscard]] std::optional<std::int32_t> device_of(
      const void* pointer) const;
  // Whether allocate_host gave the host memory that holds this byte.
  [[nodiscard]] bool is_pinned(const void* pointer) const;
  // Whether one live allocation of device memory holds all these bytes.
  [[nodiscard]] bool live(Address address, std::size_t bytes) const;
  // The bytes behind a device address; for bodies of tasks only.
  [[nodiscard]] std::byte* shadow(Address address) const;

  // ---- streams. What puts work on a stream, records, waits, captures or
  // replays there, gives kStreamContext unless the stream's device is the
  // thread's; to synchronise and to ask is allowed from everywhere.
  [[nodiscard]] Status create_stream(Stream** stream);
  // Waits for pending work unless forced; forced drops it.
  [[nodiscard]] Status destroy_stream(Stream* stream, bool force);
  // Of the calling thread's device; what a null handle means.
  [[nodiscard]] Stream* default_stream();
  // Null means the default stream; an unknown handle gives null.
  [[nodiscard]] Stream* find_stream(void* handle);
  // While the stream captures, records a node instead.
  [[nodiscard]] Status submit(Stream* stream, Task task);
  [[nodiscard]] Status query(Stream* stream, bool* done);
  using Timeout = std::optional<std::chrono::milliseconds>;
  [[nodiscard]] Status synchronize(Stream* stream, Timeout timeout);
  [[nodiscard]] Status synchronize_device(Timeout timeout);
  // The device that a stream belongs to.
  [[nodiscard]] std::int32_t device_of(const Stream* stream) const;
  // A number that traces and torch_npu show.
  [[nodiscard]] std::int32_t id_of(const Stream* stream) const;

  // ---- copies; either side may be device or host memory
  // Blocks until the bytes have arrived; is ordered after nothing.
  [[nodiscard]] Status copy(void* to, const void* from, std::size_t bytes);
  // With host memory that is not pinned: waits for the stream, then as copy.
  [[nodiscard]] Status copy_async(void* to, const void* from, std::size_t bytes,
                                  Stream* stream);
  [[nodiscard]] Status fill(void* to, std::int32_t value, std::size_t bytes);
  [[nodiscard]] Status fill_async(void* to, std::int32_t value,
                                  std::size_t bytes, Stream* stream);

  // ---- events
  [[nodiscard]] Status create_event(Event** event);
  [[nodiscard]] Status destroy_event(Event* event);
  [[nodiscard]] Event* find_event(void* handle);
  [[nodiscard]] Status record(Event* event, Stream* stream);
  // Snapshots the latest record; without one there is nothing to wait for.
  [[nodiscard]] Status wait(Stream* stream, Event* event);
  [[nodiscard]] Status reset(Event* event, Stream* stream);
  [[nodiscard]] Status query(Event* event, bool* done);
  [[nodiscard]] Status synchronize(Event* event, Timeout timeout);
  // Virtual milliseconds between two records: order, never speed.
  [[nodiscard]] Status elapsed(Event* begin, Event* end, float* ms);
  [[nodiscard]] std::uint64_t id_of(const Event* event) const;

  // ---- graphs. A stream that captures can be neither waited for nor asked
  // (kStreamCaptured), nor an event recorded in a capture (kEventCaptured); the
  // capture goes on regardless. What blocks the host, copy and fill, is subject
  // to the modes of captures and threads (kCaptureModeForbids).
  [[nodiscard]] Status begin_capture(Stream* stream, CaptureMode mode);
  [[nodiscard]] Status capture_info(Stream* stream, CaptureState* state,
                                    Graph** graph);
  [[nodiscard]] Status end_capture(Stream* stream, Graph** graph);
  // Puts the thread's mode in place of *mode and *mode in place of it.
  [[nodiscard]] Status exchange_capture_mode(CaptureMode* mode);
  [[nodiscard]] Graph* find_graph(void* handle);
  [[nodiscard]] Status replay(Graph* graph, Stream* stream);
  [[nodiscard]] Status destroy_graph(Graph* graph);
  [[nodiscard]] std::uint32_t id_of(const Graph* graph) const;

  // ---- errors
  // The sticky one of an asynchronous operation, kOk if there is none. From
  // then on waits give it, and tasks are dropped.
  [[nodiscard]] Status last_async_error() const;
  // Text for the latest failure in the calling thread; empty if there is none.
  [[nodiscard]] std::string recent_message() const;
  // Remembers a failure of the calling thread and returns its status.
  Status fail(Status status, std::string_view message);

  // ---- faults that ASCEND_SIM_FAULT asks for
  // Counts an occurrence of a point and says whether it must fail now.
  [[nodiscard]] bool fault(std::string_view point);

  // ---- what tests and people read
  void report(std::string kind, const std::string& text);
  [[nodiscard]] std::vector<Report> take_reports();
  // Notes a call that is no task: synchronisations, allocations, launches.
  void note(std::string name, std::string category,
            std::vector<std::pair<std::string, std::string>> notes = {});
  // Chrome-trace JSON of all so far.
  [[nodiscard]] std::string trace() const;
  // Names of executed tasks in order of execution, with their streams.
  [[nodiscard]] std::vector<std::string> schedule() const;

  // The state; for the files of this folder alone.
  struct Machine;

 private:
  // Runs a copy or fill in the calling thread, or gives what forbids it.
  Status run_now(const Task& task, Status forbidden);

  std::unique_ptr<Machine> machine_;
};

}  // namespace ascend_sim
