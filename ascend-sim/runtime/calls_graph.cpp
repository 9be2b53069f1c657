// Runtime's calls on graphs.
// Not simulated yet: each says so.
#include "runtime/machine.h"
#include "runtime/runtime.h"

namespace ascend_sim {

struct Graph {
  std::uint32_t id = 0;
};

namespace {

constexpr const char* kMissing = "graphs are not simulated yet";

}  // namespace

Status Runtime::begin_capture(Stream* /*stream*/, CaptureMode /*mode*/) {
  return machine_->fail(Status::kUnsupported, kMissing);
}

Status Runtime::capture_info(Stream* /*stream*/, CaptureState* state,
                             Graph** graph) {
  *state = CaptureState::kNone;
  *graph = nullptr;
  return Status::kOk;
}

Status Runtime::end_capture(Stream* /*stream*/, Graph** /*graph*/) {
  return machine_->fail(Status::kUnsupported, kMissing);
}

Status Runtime::exchange_capture_mode(CaptureMode* mode) {
  std::swap(machine_->thread().mode, *mode);
  return Status::kOk;
}

Graph* Runtime::find_graph(void* /*handle*/) { return nullptr; }

Status Runtime::replay(Graph* /*graph*/, Stream* /*stream*/) {
  return machine_->fail(Status::kUnsupported, kMissing);
}

Status Runtime::destroy_graph(Graph* /*graph*/) {
  return machine_->fail(Status::kUnsupported, kMissing);
}

std::uint32_t Runtime::id_of(const Graph* graph) const { return graph->id; }

}  // namespace ascend_sim
