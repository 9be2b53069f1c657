// Submission, waiting and execution: the steps that calls share.
// Exports nothing to the other folders.
#include "runtime/machine.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace ascend_sim {
namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Runtime::Machine::Machine(Settings from)
    : settings(std::move(from)),
      serial(next_serial()),
      process(getpid()),
      engine(settings.seed, *this) {
  for (std::int32_t device = 0; device < settings.devices; ++device) {
    memories.push_back(std::make_unique<DeviceMemory>(settings.memory_bytes));
    default_streams.push_back(make_stream(device));
  }
}

Runtime::Machine::~Machine() {
  for (const auto& [pointer, bytes] : host_blocks) {
    std::free(pointer);
  }
}

Call::Call(Runtime::Machine& machine) {
  if (getpid() == machine.process) {
    lock = Engine::Lock(machine.engine.mutex());
  } else {
    machine.fail(Status::kInternal,
                 "the simulated devices belong to the process that opened "
                 "them, not to one forked from it: start workers before the "
                 "first use of a device, or with spawn");
  }
}

ThreadState& Runtime::Machine::thread() const {
  thread_local ThreadState state;
  if (state.machine != serial) {
    state = {};
    state.machine = serial;
  }
  return state;
}

Status Runtime::Machine::fail(Status status, std::string_view message) const {
  std::array<char, 512>& kept = thread().message;
  const std::size_t length = std::min(message.size(), kept.size() - 1);
  std::memcpy(kept.data(), message.data(), length);
  kept[length] = '\0';
  return status;
}

DeviceMemory* Runtime::Machine::memory_of(Address address) const {
  for (const auto& memory : memories) {
    if (memory->contains(address)) {
      return memory.get();
    }
  }
  return nullptr;
}

Stream* Runtime::Machine::make_stream(std::int32_t device) {
  auto stream = std::make_unique<Stream>();
  stream->id = static_cast<std::int32_t>(components);
  stream->device = device;
  stream->component = components++;
  stream->end = engine.now();
  Stream* const made = stream.get();
  streams.emplace(made, std::move(stream));
  return made;
}

Status Runtime::Machine::enqueue(Stream& stream, Task task) {
  const Ticks now = engine.tick();
  stream.clock.join(host);
  stream.clock.set(stream.component, ++stream.sequence);
  Job job;
  job.start = std::max(now, stream.end);
  job.end = job.start == kNever
                ? kNever
                : job.start + engine.duration(stream.id, stream.sequence);
  job.task = std::make_shared<const Task>(std::move(task));
  job.device = stream.device;
  job.stream = stream.id;
  job.sequence = stream.sequence;
  stream.end = job.end;
  engine.push(std::move(job));
  return Status::kOk;
}

Status Runtime::Machine::wait_until(Engine::Lock& lock, Ticks time,
                                    Timeout timeout) {
  engine.advance(time);
  if (!engine.drain(lock, timeout)) {
    return fail(Status::kSyncTimeout, "the wait for pending work timed out");
  }
  if (async_error != Status::kOk) {
    return fail(async_error, "an asynchronous operation failed earlier");
  }
  return Status::kOk;
}

bool Runtime::Machine::check_operands(const Task& task,
                                      std::string_view /*when*/) const {
  return std::all_of(
      task.accesses.begin(), task.accesses.end(), [this](const Access& access) {
        const DeviceMemory* const memory = memory_of(access.address);
        return memory != nullptr &&
               memory->find(access.address, access.bytes) != nullptr;
      });
}

void Runtime::Machine::materialize(const Task& task) {
  for (const Access& access : task.accesses) {
    memory_of(access.address)->materialize(access.address, access.bytes);
  }
}

Status Runtime::Machine::run_on_host(Engine::Lock& lock, const Task& task) {
  engine.tick();
  engine.drain(lock, std::nullopt);
  if (!check_operands(task, "in a call")) {
    return fail(Status::kInvalidParam,
                task.name + ": an operand lies outside of every allocation");
  }
  materialize(task);
  return task.body();
}

bool Runtime::Machine::start(const Job& job) {
  if (async_error != Status::kOk) {
    return false;
  }
  if (!check_operands(*job.task, "when it ran")) {
    async_error = Status::kVectorCoreException;
    return false;
  }
  materialize(*job.task);
  executed.push_back(job.task->name + "@" + std::to_string(job.stream));
  return true;
}

void Runtime::Machine::finish(const Job& /*job*/, Status status) {
  if (status != Status::kOk && async_error == Status::kOk) {
    async_error = status;
  }
}

}  // namespace ascend_sim
