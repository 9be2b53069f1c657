// Exports of libascendcl about streams. Orders nothing itself.
#include <cstdint>

#include "abi/ascendcl/calls.h"

namespace {

using ascend_sim::Runtime;
using ascend_sim::Status;
using ascend_sim::Stream;
using ascend_sim::Task;
using ascend_sim::abi::code;
using ascend_sim::abi::missing;
using ascend_sim::abi::refuse;
using ascend_sim::abi::timeout_of;
using ascend_sim::abi::unsupported;
using ascend_sim::abi::with_stream;

aclError create(const char* function, aclrtStream* stream) {
  if (stream == nullptr) return missing(function, "stream");
  Stream* made = nullptr;
  const Status status = Runtime::get().create_stream(&made);
  *stream = made;
  return code(status);
}

}  // namespace

extern "C" {

aclError aclrtCreateStream(aclrtStream* stream) {
  return create("aclrtCreateStream", stream);
}

// Priorities and launch flags change speed on hardware, never meaning.
aclError aclrtCreateStreamWithConfig(aclrtStream* stream,
                                     std::uint32_t /*priority*/,
                                     std::uint32_t /*flag*/) {
  return create("aclrtCreateStreamWithConfig", stream);
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  if (stream == nullptr) {
    return missing("aclrtCtxGetCurrentDefaultStream", "stream");
  }
  *stream = Runtime::get().default_stream();
  return ACL_SUCCESS;
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return with_stream("aclrtDestroyStream", stream, [](Stream* on) {
    return Runtime::get().destroy_stream(on, false);
  });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return with_stream("aclrtDestroyStreamForce", stream, [](Stream* on) {
    return Runtime::get().destroy_stream(on, true);
  });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return with_stream("aclrtSynchronizeStream", stream, [](Stream* on) {
    return Runtime::get().synchronize(on, std::nullopt);
  });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream,
                                           std::int32_t timeout) {
  return with_stream(
      "aclrtSynchronizeStreamWithTimeout", stream, [&](Stream* on) {
        return Runtime::get().synchronize(on, timeout_of(timeout));
      });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  if (status == nullptr) return missing("aclrtStreamQuery", "status");
  bool done = false;
  const aclError result =
      with_stream("aclrtStreamQuery", stream,
                  [&](Stream* on) { return Runtime::get().query(on, &done); });
  *status = done ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  return result;
}

aclError aclrtStreamGetId(aclrtStream stream, std::int32_t* id) {
  if (id == nullptr) return missing("aclrtStreamGetId", "streamId");
  return with_stream("aclrtStreamGetId", stream, [&](Stream* on) {
    *id = Runtime::get().id_of(on);
    return Status::kOk;
  });
}

// A stream whose task failed stops here always, and shapes are not cached: both
// attributes are accepted because no program can tell the difference.
aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr attribute,
                                 aclrtStreamAttrValue* /*value*/) {
  if (attribute == ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK) {
    return refuse(Status::kUnsupported, "aclrtSetStreamAttribute",
                  "the overflow check is not simulated");
  }
  return with_stream("aclrtSetStreamAttribute", stream,
                     [](Stream*) { return Status::kOk; });
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, std::uint64_t mode) {
  if (mode == ACL_CONTINUE_ON_FAILURE) {
    return refuse(Status::kUnsupported, "aclrtSetStreamFailureMode",
                  "a stream always stops at a failure");
  }
  return with_stream("aclrtSetStreamFailureMode", stream,
                     [](Stream*) { return Status::kOk; });
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, std::uint32_t flag) {
  if (flag != 0) {
    return refuse(Status::kUnsupported, "aclrtSetStreamOverflowSwitch",
                  "the overflow check is not simulated");
  }
  return with_stream("aclrtSetStreamOverflowSwitch", stream,
                     [](Stream*) { return Status::kOk; });
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, std::uint32_t* flag) {
  if (flag == nullptr) return missing("aclrtGetStreamOverflowSwitch", "flag");
  *flag = 0;
  return with_stream("aclrtGetStreamOverflowSwitch", stream,
                     [](Stream*) { return Status::kOk; });
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function,
                             void* arguments) {
  if (function == nullptr) return missing("aclrtLaunchHostFunc", "fn");
  return with_stream("aclrtLaunchHostFunc", stream, [&](Stream* on) {
    Task task;
    task.name = "aclrtLaunchHostFunc";
    task.body = [function, arguments] {
      function(arguments);
      return Status::kOk;
    };
    return Runtime::get().submit(on, std::move(task));
  });
}

// Callbacks that a subscribed thread must fetch are not simulated.

aclError aclrtProcessReport(std::int32_t) {
  return unsupported("aclrtProcessReport");
}

aclError aclrtSubscribeReport(std::uint64_t, aclrtStream) {
  return unsupported("aclrtSubscribeReport");
}

aclError aclrtUnSubscribeReport(std::uint64_t, aclrtStream) {
  return unsupported("aclrtUnSubscribeReport");
}

aclError aclrtLaunchCallback(aclrtCallback, void*, aclrtCallbackBlockType,
                             aclrtStream) {
  return unsupported("aclrtLaunchCallback");
}

}  // extern "C"
