// The machine's life: threads, handles, the end of the process.
// Runs no task.
#include "runtime/machine.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ascend_sim {
namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::uint32_t next_thread() {
  static std::atomic<std::uint32_t> last{0};
  return last++;
}

void write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  const bool written =
      file != nullptr &&
      std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file == nullptr || std::fclose(file) != 0 || !written) {
    std::fprintf(stderr,
                 "ascend-sim: ASCEND_SIM_TRACE names a file that cannot be "
                 "written: %s\n",
                 path.c_str());
  }
}

}  // namespace

Runtime::Machine::Machine(Settings from)
    : settings(std::move(from)),
      serial(next_serial()),
      process(getpid()),
      faults(settings.faults),
      engine(settings.seed, *this) {
  for (std::int32_t device = 0; device < settings.devices; ++device) {
    memories.push_back(std::make_unique<DeviceMemory>(settings.memory_bytes));
    default_streams.push_back(make_stream(device));
  }
}

Runtime::Machine::~Machine() {
  for (const auto& [address, block] : pinned) {
    std::free(block.pointer);
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
    state.number = next_thread();
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

Stream* Runtime::Machine::make_stream(std::int32_t device) {
  auto stream = std::make_unique<Stream>();
  stream->id = streams_made++;
  stream->device = device;
  stream->component = components.take();
  stream->end = engine.now();
  Stream* const made = stream.get();
  streams.emplace(made, std::move(stream));
  return made;
}

Status Runtime::Machine::known(const Stream* stream,
                               std::string_view call) const {
  return streams.contains(stream)
             ? Status::kOk
             : fail(Status::kInvalidHandle,
                    std::string(call) + ": no stream has this handle");
}

Status Runtime::Machine::known(const Event* event,
                               std::string_view call) const {
  return events.contains(event)
             ? Status::kOk
             : fail(Status::kInvalidHandle,
                    std::string(call) + ": no event has this handle");
}

Status Runtime::Machine::usable(const Stream* stream,
                                std::string_view call) const {
  if (known(stream, call) != Status::kOk) {
    return Status::kInvalidHandle;
  }
  if (stream->device != thread().device) {
    return fail(Status::kStreamContext,
                std::string(call) + ": stream " + std::to_string(stream->id) +
                    " belongs to device " + std::to_string(stream->device) +
                    ", but the thread's device is " +
                    std::to_string(thread().device) +
                    ": set the stream's device first");
  }
  return Status::kOk;
}

Status Runtime::Machine::usable(const Event* event, const Stream* stream,
                                std::string_view call) const {
  const Status status = known(event, call);
  return status == Status::kOk ? usable(stream, call) : status;
}

Status Runtime::Machine::ready(const Event* event,
                               std::string_view call) const {
  const Status status = known(event, call);
  if (status == Status::kOk && is_capturing(*event)) {
    return fail(Status::kEventCaptured,
                std::string(call) + ": event " + std::to_string(event->id) +
                    " belongs to a capture that has not ended");
  }
  return status;
}

Notes Runtime::Machine::names_of(const Event& event, const Stream& stream) {
  return {{"event", std::to_string(event.id)},
          {"stream", std::to_string(stream.id)}};
}

void Runtime::Machine::note(std::string name, std::string category,
                            Notes notes) {
  notes.emplace_back("device", std::to_string(thread().device));
  trace.noted(engine.now(), thread().number, std::move(name),
              std::move(category), std::move(notes));
}

bool Runtime::Machine::finish_process() {
  if (getpid() != process) {
    return false;
  }
  engine.stop();
  const Engine::Lock lock(engine.mutex());
  if (!settings.trace_path.empty()) {
    write_file(settings.trace_path, trace.json(settings.devices));
  }
  const std::vector<Report> unread = reports.take();
  for (const Report& report : unread) {
    std::fprintf(stderr, "ascend-sim: %s: %s\n", report.kind.c_str(),
                 report.text.c_str());
  }
  return !unread.empty();
}

}  // namespace ascend_sim
