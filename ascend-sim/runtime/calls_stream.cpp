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
  if (machine_->streams.count(stream) == 0 ||
      std::ranges::count(machine_->default_streams, stream) != 0) {
    return machine_->fail(Status::kInvalidHandle,
                          "destroy_stream: no stream has this handle, or it is "
                          "a device's default stream");
  }
  Status status = Status::kOk;
  if (force) {
    machine_->engine.drop(stream->id);
  } else {
    status = machine_->wait_until(call.lock, stream->end, std::nullopt);
  }
  machine_->streams.erase(stream);
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
  return call ? machine_->enqueue(*stream, std::move(task)) : Status::kInternal;
}

Status Runtime::query(Stream* stream, bool* done) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Ticks now = machine_->engine.tick();
  *done = stream->end <= now;
  const Status status = machine_->wait_until(call.lock, now, std::nullopt);
  if (*done) {
    machine_->host.join(stream->clock);
  }
  return status;
}

Status Runtime::synchronize(Stream* stream, Timeout timeout) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status status = machine_->wait_until(call.lock, stream->end, timeout);
  if (status == Status::kOk) {
    machine_->host.join(stream->clock);
  }
  return status;
}

Status Runtime::synchronize_device(Timeout timeout) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  Ticks last = machine_->engine.now();
  Clock clock;
  for (const auto& [handle, stream] : machine_->streams) {
    if (stream->device == device()) {
      last = std::max(last, stream->end);
      clock.join(stream->clock);
    }
  }
  const Status status = machine_->wait_until(call.lock, last, timeout);
  if (status == Status::kOk) {
    machine_->host.join(clock);
  }
  return status;
}

std::int32_t Runtime::device_of(const Stream* stream) const {
  return stream->device;
}

std::int32_t Runtime::id_of(const Stream* stream) const { return stream->id; }

}  // namespace ascend_sim
