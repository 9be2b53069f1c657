// Runtime's calls on streams.
// Copies and events have their own files.
#include <algorithm>
#include <utility>

#include "runtime/machine.h"
#include "runtime/runtime.h"

namespace ascend_sim {

Status Runtime::create_stream(Stream** stream) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  if (stream == nullptr) {
    return machine_->fail(Status::kInvalidParam,
                          "create_stream: the result's address is null");
  }
  *stream = machine_->make_stream(device());
  return Status::kOk;
}

Status Runtime::destroy_stream(Stream* stream, bool force) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status known = machine_->known(stream, "destroy_stream");
  if (known != Status::kOk) {
    return known;
  }
  if (std::ranges::count(machine_->default_streams, stream) != 0) {
    return machine_->fail(Status::kInvalidHandle,
                          "destroy_stream: a device's default stream stays");
  }
  if (stream->capture.id != 0) {
    return machine_->fail(Status::kStreamCaptured,
                          "destroy_stream: stream " +
                              std::to_string(stream->id) + " captures a graph");
  }
  Status status = Status::kOk;
  if (force) {
    machine_->engine.drain(call.lock, std::nullopt);
    machine_->engine.drop(stream->id);
    machine_->host.join(stream->clock);
  } else {
    status = machine_->synchronize(call.lock, *stream, std::nullopt);
  }
  const auto found = machine_->streams.find(stream);
  if (found != machine_->streams.end()) {  // no other thread was here
    machine_->components.give_back(stream->component);
    machine_->streams.erase(found);
  }
  return status;
}

Stream* Runtime::default_stream() {
  return machine_->default_streams[static_cast<std::size_t>(device())];
}

Stream* Runtime::find_stream(void* handle) {
  if (handle == nullptr) {
    return default_stream();
  }
  const Call call(*machine_);
  if (!call) {
    return nullptr;
  }
  const auto found = machine_->streams.find(handle);
  return found == machine_->streams.end() ? nullptr : found->second.get();
}

Status Runtime::submit(Stream* stream, Task task) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status usable = machine_->usable(stream, task.name);
  return usable == Status::kOk ? machine_->submit(*stream, std::move(task))
                               : usable;
}

Status Runtime::query(Stream* stream, bool* done) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status known = machine_->known(stream, "query");
  if (known != Status::kOk) {
    return known;
  }
  if (stream->capture.id != 0) {
    return machine_->fail(
        Status::kStreamCaptured,
        "query: stream " + std::to_string(stream->id) + " captures a graph");
  }
  const Ticks now = machine_->engine.tick();
  *done = stream->end <= now;
  const Clock known_over = *done ? stream->clock : Clock{};
  return machine_->wait_for(call.lock, now, known_over, std::nullopt);
}

Status Runtime::synchronize(Stream* stream, Timeout timeout) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status known = machine_->known(stream, "synchronize");
  if (known != Status::kOk) {
    return known;
  }
  machine_->note("synchronize_stream", "wait",
                 {{"stream", std::to_string(stream->id)}});
  return machine_->synchronize(call.lock, *stream, timeout);
}

Status Runtime::synchronize_device(Timeout timeout) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  Ticks last = machine_->engine.now();
  Clock clock;
  for (const auto& [handle, stream] : machine_->streams) {
    if (stream->device != device()) {
      continue;
    }
    if (stream->capture.id != 0) {
      return machine_->fail(Status::kStreamCaptured,
                            "synchronize_device: stream " +
                                std::to_string(stream->id) +
                                " captures a graph");
    }
    last = std::max(last, stream->end);
    clock.join(stream->clock);
  }
  machine_->note("synchronize_device", "wait");
  return machine_->wait_for(call.lock, last, clock, timeout);
}

std::int32_t Runtime::device_of(const Stream* stream) const {
  return stream->device;
}

std::int32_t Runtime::id_of(const Stream* stream) const { return stream->id; }

}  // namespace ascend_sim
