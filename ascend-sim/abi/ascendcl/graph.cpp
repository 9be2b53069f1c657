// Exports of libascendcl about captured graphs. Keeps none.
#include <cstdint>

#include "abi/ascendcl/calls.h"

namespace {

using ascend_sim::CaptureMode;
using ascend_sim::CaptureState;
using ascend_sim::Graph;
using ascend_sim::Runtime;
using ascend_sim::Status;
using ascend_sim::Stream;
using ascend_sim::abi::missing;
using ascend_sim::abi::refuse;
using ascend_sim::abi::with_graph;
using ascend_sim::abi::with_stream;

static_assert(static_cast<int>(CaptureMode::kGlobal) ==
              ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
static_assert(static_cast<int>(CaptureMode::kThreadLocal) ==
              ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL);
static_assert(static_cast<int>(CaptureMode::kRelaxed) ==
              ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
static_assert(static_cast<int>(CaptureState::kNone) ==
              ACL_MODEL_RI_CAPTURE_STATUS_NONE);
static_assert(static_cast<int>(CaptureState::kActive) ==
              ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
static_assert(static_cast<int>(CaptureState::kInvalidated) ==
              ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);

[[nodiscard]] bool is_mode(aclmdlRICaptureMode mode) {
  return mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL &&
         mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
}

}  // namespace

extern "C" {

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
  if (!is_mode(mode)) {
    return refuse(Status::kInvalidParam, "aclmdlRICaptureBegin",
                  "unknown capture mode");
  }
  return with_stream("aclmdlRICaptureBegin", stream, [&](Stream* on) {
    return Runtime::get().begin_capture(on, static_cast<CaptureMode>(mode));
  });
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream,
                                aclmdlRICaptureStatus* status,
                                aclmdlRI* graph) {
  if (status == nullptr) return missing("aclmdlRICaptureGetInfo", "status");
  CaptureState state = CaptureState::kNone;
  Graph* captured = nullptr;
  const aclError result =
      with_stream("aclmdlRICaptureGetInfo", stream, [&](Stream* on) {
        return Runtime::get().capture_info(on, &state, &captured);
      });
  *status = static_cast<aclmdlRICaptureStatus>(state);
  if (graph != nullptr) *graph = captured;
  return result;
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* graph) {
  if (graph == nullptr) return missing("aclmdlRICaptureEnd", "modelRI");
  Graph* captured = nullptr;
  const aclError result = with_stream(
      "aclmdlRICaptureEnd", stream,
      [&](Stream* on) { return Runtime::get().end_capture(on, &captured); });
  *graph = captured;
  return result;
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  if (mode == nullptr) {
    return missing("aclmdlRICaptureThreadExchangeMode", "mode");
  }
  if (!is_mode(*mode)) {
    return refuse(Status::kInvalidParam, "aclmdlRICaptureThreadExchangeMode",
                  "unknown capture mode");
  }
  auto exchanged = static_cast<CaptureMode>(*mode);
  const Status status = Runtime::get().exchange_capture_mode(&exchanged);
  *mode = static_cast<aclmdlRICaptureMode>(exchanged);
  return ascend_sim::abi::code(status);
}

aclError aclmdlRIExecuteAsync(aclmdlRI graph, aclrtStream stream) {
  return with_graph("aclmdlRIExecuteAsync", graph, [&](Graph* which) {
    return static_cast<Status>(with_stream(
        "aclmdlRIExecuteAsync", stream,
        [&](Stream* on) { return Runtime::get().replay(which, on); }));
  });
}

aclError aclmdlRIDestroy(aclmdlRI graph) {
  return with_graph("aclmdlRIDestroy", graph, [](Graph* which) {
    return Runtime::get().destroy_graph(which);
  });
}

aclError aclmdlRIGetId(aclmdlRI graph, std::uint32_t* id) {
  if (id == nullptr) return missing("aclmdlRIGetId", "modelRIId");
  return with_graph("aclmdlRIGetId", graph, [&](Graph* which) {
    *id = Runtime::get().id_of(which);
    return Status::kOk;
  });
}

}  // extern "C"
