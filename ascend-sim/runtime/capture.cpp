// Captures: what a stream records instead of running it, and which streams
// take part.
// Runs no graph.
#include "runtime/capture.h"

#include <algorithm>
#include <utility>

#include "runtime/machine.h"

namespace ascend_sim {
namespace {

void add_to(std::vector<std::uint32_t>& frontier,
            const std::vector<std::uint32_t>& nodes) {
  frontier.insert(frontier.end(), nodes.begin(), nodes.end());
  std::ranges::sort(frontier);
  const auto repeated = std::ranges::unique(frontier);
  frontier.erase(repeated.begin(), repeated.end());
}

}  // namespace

Capture* Runtime::Machine::find_capture(std::uint64_t id) const {
  const auto found = captures.find(id);
  return found == captures.end() ? nullptr : found->second.get();
}

Capture* Runtime::Machine::capture_of(const Stream& stream) const {
  return find_capture(stream.capture.id);
}

bool Runtime::Machine::is_capturing(const Graph& graph) const {
  return std::ranges::any_of(captures, [&graph](const auto& each) {
    return each.second->graph == &graph;
  });
}

// The rules are CANN's: relaxed in the thread allows everything; global in the
// thread forbids what blocks while any capture of the device is global, or one
// that the thread began is thread-local; thread-local in the thread forbids it
// only where the thread itself began a capture that is not relaxed.
bool Runtime::Machine::may_block() const {
  const ThreadState& caller = thread();
  bool device_is_global = false;
  bool began_global = false;
  bool began_local = false;
  for (const auto& [id, capture] : captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool global = capture->mode == CaptureMode::kGlobal;
    device_is_global = device_is_global ||
                       (global && capture->origin->device == caller.device);
    began_global = began_global || (own && global);
    began_local =
        began_local || (own && capture->mode == CaptureMode::kThreadLocal);
  }
  switch (caller.mode) {
    case CaptureMode::kGlobal:
      return !device_is_global && !began_local;
    case CaptureMode::kThreadLocal:
      return !began_global && !began_local;
    case CaptureMode::kRelaxed:
      return true;
  }
  return true;
}

Status Runtime::Machine::capture_task(Stream& stream, Task task) {
  const Capture& capture = *capture_of(stream);
  if (!capture.is_valid) {
    return fail(Status::kCaptureInvalidated,
                "an earlier error made this capture invalid");
  }
  Graph& graph = *capture.graph;
  Node node;
  node.body = task.body ? std::make_shared<const std::function<Status()>>(
                              std::exchange(task.body, nullptr))
                        : nullptr;
  node.task = std::make_shared<const Task>(std::move(task));
  node.lane = stream.capture.lane;
  const auto number = static_cast<std::uint32_t>(graph.nodes.size());
  node.predecessors = std::exchange(stream.capture.frontier, {number});
  const std::string who = node.task->name + ", captured on stream " +
                          std::to_string(stream.id) + ",";
  for (const Access& access : node.task->accesses) {
    node.serials.push_back(serial_of(access));
    if (node.serials.back() == 0 && access.bytes != 0) {
      report_outside(who, node.task->name, access);
    }
  }
  graph.nodes.push_back(std::move(node));
  ++stream.capture.steps;
  stream.capture.is_joined_back = false;
  return Status::kOk;
}

void Runtime::Machine::capture_record(Stream& stream, Event& event) {
  ++stream.capture.steps;
  stream.capture.is_joined_back = false;
  event.capture = {stream.capture.id, &stream, stream.capture.steps,
                   stream.capture.frontier};
}

void Runtime::Machine::join_capture(Capture& capture, Stream& stream) {
  stream.capture = {};
  stream.capture.id = capture.id;
  stream.capture.lane = static_cast<std::uint32_t>(capture.graph->lanes.size());
  capture.graph->lanes.push_back({components.take(), stream.id});
  capture.streams.push_back(&stream);
}

Status Runtime::Machine::capture_wait(Stream& stream, Event& event) {
  Capture* const recorded = find_capture(event.capture.id);
  if (recorded == nullptr) {
    // A stream that captures may not depend on work that the graph lacks.
    return event.mark ? fail(Status::kCaptureDependency,
                             "stream " + std::to_string(stream.id) +
                                 " captures, but the event was recorded "
                                 "outside of the capture")
                      : Status::kOk;
  }
  if (std::ranges::count(default_streams, &stream) != 0) {
    recorded->is_valid = false;
    return fail(Status::kCaptureImplicit,
                "a device's default stream cannot join a capture");
  }
  if (stream.capture.id == 0) {
    join_capture(*recorded, stream);
  } else if (stream.capture.id != recorded->id) {
    recorded->is_valid = false;
    capture_of(stream)->is_valid = false;
    return fail(Status::kCaptureConflict,
                "the event was recorded in another capture; both are invalid "
                "now");
  }
  add_to(stream.capture.frontier, event.capture.nodes);
  ++stream.capture.steps;
  stream.capture.is_joined_back = false;
  StreamCapture& source = event.capture.stream->capture;
  if (event.capture.stream != &stream && source.steps == event.capture.step) {
    source.is_joined_back = true;
  }
  return Status::kOk;
}

Status Runtime::Machine::check_capture(const Capture& capture) const {
  if (capture.mode != CaptureMode::kRelaxed &&
      capture.thread != std::this_thread::get_id()) {
    return fail(Status::kCaptureWrongThread,
                "a capture that is not relaxed must end in the thread in which "
                "it began");
  }
  if (!capture.is_valid) {
    return fail(Status::kCaptureInvalidated,
                "an earlier error made this capture invalid");
  }
  // The last wait of all is then the origin's, so nothing is left outside.
  for (const Stream* const stream : capture.streams) {
    if (stream != capture.origin && !stream->capture.is_joined_back) {
      return fail(Status::kStreamUnjoined,
                  "stream " + std::to_string(stream->id) +
                      " joined the capture, but its last step is not an event "
                      "that another of its streams waits for");
    }
  }
  return Status::kOk;
}

void Runtime::Machine::close_capture(Capture& capture, bool keep_graph) {
  for (Stream* const stream : capture.streams) {
    stream->capture = {};
  }
  if (!keep_graph) {
    drop_graph(*capture.graph);
  }
  captures.erase(capture.id);
}

}  // namespace ascend_sim
