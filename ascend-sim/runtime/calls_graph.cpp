// Runtime's calls on graphs: captures, replays, destruction.
// Checks handles and modes; capture.cpp and graph.cpp do the rest.
#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/machine.h"
#include "runtime/runtime.h"

namespace ascend_sim {

Status Runtime::begin_capture(Stream* stream, CaptureMode mode) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status usable = machine_->usable(stream, "begin_capture");
  if (usable != Status::kOk) {
    return usable;
  }
  if (std::ranges::count(machine_->default_streams, stream) != 0) {
    return machine_->fail(Status::kUnsupported,
                          "begin_capture: a device's default stream cannot "
                          "capture: use a stream that you created");
  }
  if (stream->capture.id != 0) {
    return machine_->fail(Status::kStreamCaptured,
                          "begin_capture: stream " +
                              std::to_string(stream->id) + " captures already");
  }
  auto graph = std::make_unique<Graph>();
  graph->id = ++machine_->graphs_made;
  graph->device = stream->device;
  auto capture = std::make_unique<Capture>();
  capture->id = ++machine_->captures_made;
  capture->graph = graph.get();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  machine_->join_capture(*capture, *stream);
  machine_->note("begin_capture", "graph",
                 {{"graph", std::to_string(graph->id)},
                  {"stream", std::to_string(stream->id)}});
  machine_->graphs.emplace(graph.get(), std::move(graph));
  machine_->captures.emplace(capture->id, std::move(capture));
  return Status::kOk;
}

Status Runtime::capture_info(Stream* stream, CaptureState* state,
                             Graph** graph) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status known = machine_->known(stream, "capture_info");
  if (known != Status::kOk) {
    return known;
  }
  const Capture* const capture = machine_->capture_of(*stream);
  *graph = capture == nullptr ? nullptr : capture->graph;
  *state = capture == nullptr  ? CaptureState::kNone
           : capture->is_valid ? CaptureState::kActive
                               : CaptureState::kInvalidated;
  return Status::kOk;
}

Status Runtime::end_capture(Stream* stream, Graph** graph) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  *graph = nullptr;
  const Status usable = machine_->usable(stream, "end_capture");
  if (usable != Status::kOk) {
    return usable;
  }
  Capture* const capture = machine_->capture_of(*stream);
  if (capture == nullptr) {
    return machine_->fail(Status::kStreamNotCaptured,
                          "end_capture: stream " + std::to_string(stream->id) +
                              " does not capture");
  }
  if (capture->origin != stream) {
    return machine_->fail(Status::kCaptureUnmatched,
                          "end_capture: the capture began on stream " +
                              std::to_string(capture->origin->id) +
                              " and must end there");
  }
  Status status = machine_->check_capture(*capture);
  if (machine_->faults.hit("capture_end")) {
    status = machine_->fail(Status::kInternal,
                            "end_capture: fails because ASCEND_SIM_FAULT asks "
                            "for it");
  }
  Graph* const made = capture->graph;
  machine_->note("end_capture", "graph",
                 {{"graph", std::to_string(made->id)},
                  {"nodes", std::to_string(made->nodes.size())}});
  machine_->close_capture(*capture, status == Status::kOk);
  if (status == Status::kOk) {
    *graph = made;
  }
  return status;
}

Status Runtime::exchange_capture_mode(CaptureMode* mode) {
  std::swap(machine_->thread().mode, *mode);
  return Status::kOk;
}

Graph* Runtime::find_graph(void* handle) {
  const Call call(*machine_);
  if (!call) {
    return nullptr;
  }
  const auto found = machine_->graphs.find(handle);
  return found == machine_->graphs.end() ? nullptr : found->second.get();
}

Status Runtime::replay(Graph* graph, Stream* stream) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const Status usable = machine_->usable(stream, "replay");
  if (usable != Status::kOk) {
    return usable;
  }
  if (!machine_->graphs.contains(graph)) {
    machine_->reports.add("use-after-destroy", "",
                          "a graph is replayed that was destroyed, or never "
                          "made");
    return machine_->fail(Status::kInvalidHandle,
                          "replay: no graph has this handle");
  }
  if (stream->capture.id != 0) {
    return machine_->fail(Status::kStreamCaptured,
                          "replay: stream " + std::to_string(stream->id) +
                              " captures a graph itself");
  }
  if (machine_->is_capturing(*graph)) {
    return machine_->fail(Status::kModelCaptured,
                          "replay: graph " + std::to_string(graph->id) +
                              " is still being captured");
  }
  if (machine_->faults.hit("replay")) {
    return machine_->fail(Status::kModelExecute,
                          "replay: fails because ASCEND_SIM_FAULT asks for it");
  }
  machine_->note("replay", "graph",
                 {{"graph", std::to_string(graph->id)},
                  {"stream", std::to_string(stream->id)}});
  machine_->replay(*graph, *stream);
  return Status::kOk;
}

// CANN waits for a graph that runs, and gives up after a while.
Status Runtime::destroy_graph(Graph* graph) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  if (!machine_->graphs.contains(graph)) {
    machine_->reports.add("use-after-destroy", "destroy",
                          "a graph is destroyed that was destroyed before, or "
                          "never made");
    return machine_->fail(Status::kInvalidHandle,
                          "destroy_graph: no graph has this handle");
  }
  if (machine_->is_capturing(*graph)) {
    return machine_->fail(Status::kModelCaptured,
                          "destroy_graph: graph " + std::to_string(graph->id) +
                              " is still being captured");
  }
  if (machine_->wait_until(call.lock, graph->end, std::nullopt) ==
      Status::kSyncTimeout) {
    return machine_->fail(Status::kModelRunning, "destroy_graph: graph " +
                                                     std::to_string(graph->id) +
                                                     " is still running");
  }
  if (machine_->graphs.contains(graph)) {  // another thread may have been here
    machine_->drop_graph(*graph);
  }
  return Status::kOk;
}

std::uint32_t Runtime::id_of(const Graph* graph) const { return graph->id; }

}  // namespace ascend_sim
