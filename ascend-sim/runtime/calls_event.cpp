// Runtime's calls on events.
// An event is its latest record: a time and what happened before.
#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/machine.h"
#include "runtime/runtime.h"

namespace ascend_sim {

Status Runtime::create_event(Event** event) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  if (event == nullptr) {
    return machine_->fail(Status::kInvalidParam,
                          "create_event: the result's address is null");
  }
  auto made = std::make_unique<Event>();
  made->id = ++machine_->events_made;
  *event = made.get();
  machine_->events.emplace(*event, std::move(made));
  return Status::kOk;
}

Status Runtime::destroy_event(Event* event) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  if (machine_->events.erase(event) == 0) {
    return machine_->fail(Status::kInvalidHandle,
                          "destroy_event: no event has this handle");
  }
  return Status::kOk;
}

Event* Runtime::find_event(void* handle) {
  const Call call(*machine_);
  if (!call) {
    return nullptr;
  }
  const auto found = machine_->events.find(handle);
  return found == machine_->events.end() ? nullptr : found->second.get();
}

// A record takes a tick of its stream, so that two never share a time.
Status Runtime::record(Event* event, Stream* stream) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status ready = machine_->usable(event, stream, "record");
  if (ready != Status::kOk) {
    return ready;
  }
  machine_->note("record", "event", machine_->names_of(*event, *stream));
  if (stream->capture.id != 0) {
    machine_->capture_record(*stream, *event);
    return Status::kOk;
  }
  const Ticks now = machine_->engine.tick();
  stream->clock.join(machine_->host);
  if (stream->end != kNever) {
    stream->end = std::max(now, stream->end) + 1;
  }
  event->mark = std::make_shared<const Mark>(Mark{stream->end, stream->clock});
  return Status::kOk;
}

Status Runtime::wait(Stream* stream, Event* event) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status ready = machine_->usable(event, stream, "wait");
  if (ready != Status::kOk) {
    return ready;
  }
  machine_->note("wait", "event", machine_->names_of(*event, *stream));
  if (stream->capture.id != 0 || machine_->is_capturing(*event)) {
    return machine_->capture_wait(*stream, *event);
  }
  machine_->engine.tick();
  if (event->mark) {
    stream->end = std::max(stream->end, event->mark->time);
    stream->clock.join(event->mark->clock);
  }
  return Status::kOk;
}

Status Runtime::reset(Event* event, Stream* stream) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status ready = machine_->usable(event, stream, "reset");
  if (ready == Status::kOk) {
    event->mark.reset();
  }
  return ready;
}

Status Runtime::query(Event* event, bool* done) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status ready = machine_->ready(event, "query");
  if (ready != Status::kOk) {
    return ready;
  }
  const Ticks now = machine_->engine.tick();
  const std::shared_ptr<const Mark> mark = event->mark;
  *done = !mark || mark->time <= now;
  const Clock known_over = *done && mark ? mark->clock : Clock{};
  return machine_->wait_for(call.lock, now, known_over, std::nullopt);
}

Status Runtime::synchronize(Event* event, Timeout timeout) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status ready = machine_->ready(event, "synchronize");
  if (ready != Status::kOk) {
    return ready;
  }
  machine_->note("synchronize_event", "wait",
                 {{"event", std::to_string(event->id)}});
  const std::shared_ptr<const Mark> mark = event->mark;
  if (!mark) {
    return Status::kOk;
  }
  const Status status =
      machine_->wait_for(call.lock, mark->time, mark->clock, timeout);
  return status == Status::kSyncTimeout ? Status::kEventSyncTimeout : status;
}

Status Runtime::elapsed(Event* begin, Event* end, float* ms) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  constexpr float kMillisecondsPerTick = 1e-3F;
  const Ticks now = machine_->engine.now();
  for (const Event* const event : {begin, end}) {
    const Status ready = machine_->ready(event, "elapsed");
    if (ready != Status::kOk) {
      return ready;
    }
    if (!event->mark || event->mark->time > now) {
      return machine_->fail(
          Status::kEventTimestampInvalid,
          "elapsed: event " + std::to_string(event->id) +
              " was not recorded, or its record has not been reached: "
              "synchronise with it first");
    }
  }
  if (end->mark->time < begin->mark->time) {
    return machine_->fail(Status::kEventTimestampReversal,
                          "elapsed: the second event was recorded first");
  }
  *ms = static_cast<float>(end->mark->time - begin->mark->time) *
        kMillisecondsPerTick;
  return Status::kOk;
}

std::uint64_t Runtime::id_of(const Event* event) const { return event->id; }

}  // namespace ascend_sim
