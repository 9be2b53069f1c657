// What the exported functions share: codes, handles, refusals. Exports nothing.
#pragma once

#include <string>
#include <utility>

#include "acl/acl.h"
#include "runtime/runtime.h"

namespace ascend_sim::abi {

[[nodiscard]] inline aclError code(Status status) {
  return static_cast<aclError>(status);
}

// Remembers, for aclGetRecentErrMsg, why a call failed.
inline aclError refuse(Status status, const char* function,
                       const std::string& reason) {
  return code(
      Runtime::get().fail(status, std::string(function) + ": " + reason));
}

// For what torch_npu links or looks up and the simulation does not do: an
// error, so that nobody takes nothing for success.
inline aclError unsupported(const char* function) {
  return refuse(Status::kUnsupported, function,
                "the simulated runtime does not support this function");
}

// Runs the call with what the handle stands for, or refuses the handle.
template <class Call>
aclError with_stream(const char* function, aclrtStream handle, Call&& call) {
  Stream* stream = Runtime::get().find_stream(handle);
  if (stream == nullptr) {
    return refuse(Status::kInvalidHandle, function,
                  "the handle names no live stream");
  }
  return code(std::forward<Call>(call)(stream));
}

template <class Call>
aclError with_event(const char* function, aclrtEvent handle, Call&& call) {
  Event* event = Runtime::get().find_event(handle);
  if (event == nullptr) {
    return refuse(Status::kInvalidHandle, function,
                  "the handle names no live event");
  }
  return code(std::forward<Call>(call)(event));
}

template <class Call>
aclError with_graph(const char* function, aclmdlRI handle, Call&& call) {
  Graph* graph = Runtime::get().find_graph(handle);
  if (graph == nullptr) {
    return refuse(Status::kInvalidHandle, function,
                  "the handle names no live graph");
  }
  return code(std::forward<Call>(call)(graph));
}

// Results go through pointers of the caller; null ones are refused.
inline aclError missing(const char* function, const char* argument) {
  return refuse(Status::kInvalidParam, function,
                std::string(argument) + " must not be null");
}

// Milliseconds as CANN takes them: negative means forever.
[[nodiscard]] inline Runtime::Timeout timeout_of(std::int32_t milliseconds) {
  if (milliseconds < 0) return std::nullopt;
  return std::chrono::milliseconds(milliseconds);
}

}  // namespace ascend_sim::abi
