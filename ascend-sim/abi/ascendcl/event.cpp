// Exports of libascendcl about events. Measures order, never speed.
#include <cstdint>

#include "abi/ascendcl/calls.h"

namespace {

using ascend_sim::Event;
using ascend_sim::Runtime;
using ascend_sim::Status;
using ascend_sim::Stream;
using ascend_sim::abi::code;
using ascend_sim::abi::missing;
using ascend_sim::abi::refuse;
using ascend_sim::abi::with_event;
using ascend_sim::abi::with_stream;

// The flags ask for what every simulated event does, but for one.
aclError create(const char* function, aclrtEvent* event, std::uint32_t flag) {
  if (event == nullptr) return missing(function, "event");
  if ((flag & ACL_EVENT_IPC) != 0) {
    return refuse(Status::kUnsupported, function,
                  "events between processes are not simulated");
  }
  Event* made = nullptr;
  const Status status = Runtime::get().create_event(&made);
  *event = made;
  return code(status);
}

}  // namespace

extern "C" {

aclError aclrtCreateEvent(aclrtEvent* event) {
  return create("aclrtCreateEvent", event, 0);
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, std::uint32_t flag) {
  return create("aclrtCreateEventWithFlag", event, flag);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, std::uint32_t flag) {
  return create("aclrtCreateEventExWithFlag", event, flag);
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  return with_event("aclrtDestroyEvent", event, [](Event* which) {
    return Runtime::get().destroy_event(which);
  });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return with_event("aclrtRecordEvent", event, [&](Event* which) {
    return static_cast<Status>(with_stream(
        "aclrtRecordEvent", stream,
        [&](Stream* on) { return Runtime::get().record(which, on); }));
  });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  return with_event("aclrtResetEvent", event, [&](Event* which) {
    return static_cast<Status>(with_stream(
        "aclrtResetEvent", stream,
        [&](Stream* on) { return Runtime::get().reset(which, on); }));
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return with_event("aclrtStreamWaitEvent", event, [&](Event* which) {
    return static_cast<Status>(with_stream(
        "aclrtStreamWaitEvent", stream,
        [&](Stream* on) { return Runtime::get().wait(on, which); }));
  });
}

aclError aclrtQueryEventStatus(aclrtEvent event,
                               aclrtEventRecordedStatus* status) {
  if (status == nullptr) return missing("aclrtQueryEventStatus", "status");
  bool done = false;
  const aclError result = with_event(
      "aclrtQueryEventStatus", event,
      [&](Event* which) { return Runtime::get().query(which, &done); });
  *status = done ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                 : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return result;
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return with_event("aclrtSynchronizeEvent", event, [](Event* which) {
    return Runtime::get().synchronize(which, std::nullopt);
  });
}

aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent begin,
                               aclrtEvent end) {
  if (milliseconds == nullptr) return missing("aclrtEventElapsedTime", "ms");
  return with_event("aclrtEventElapsedTime", begin, [&](Event* first) {
    return static_cast<Status>(
        with_event("aclrtEventElapsedTime", end, [&](Event* second) {
          return Runtime::get().elapsed(first, second, milliseconds);
        }));
  });
}

}  // extern "C"
