// Runtime's copies and fills, at once or on a stream.
// Converts nothing: bytes only.
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/machine.h"
#include "runtime/runtime.h"

namespace ascend_sim {
namespace {

struct Transfer {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

// What the CPU uses to reach the bytes at a pointer.
std::byte* reach(const Runtime& runtime, void* pointer) {
  return runtime.device_of(pointer)
             ? runtime.shadow(reinterpret_cast<Address>(pointer))
             : static_cast<std::byte*>(pointer);
}

const std::byte* reach(const Runtime& runtime, const void* pointer) {
  return runtime.device_of(pointer)
             ? runtime.shadow(reinterpret_cast<Address>(pointer))
             : static_cast<const std::byte*>(pointer);
}

const char* side(const Runtime& runtime, const void* pointer) {
  return runtime.device_of(pointer) ? "device" : "host";
}

// Whether the copy involves host memory that only the CPU may touch.
bool is_pageable(const Runtime& runtime, const void* pointer) {
  return !runtime.device_of(pointer) && !runtime.is_pinned(pointer);
}

// Host memory that is not pinned is nobody's business but the caller's.
void add_access(const Runtime& runtime, const void* pointer, std::size_t bytes,
                AccessKind kind, Task* task) {
  if (!is_pageable(runtime, pointer)) {
    task->accesses.push_back({reinterpret_cast<Address>(pointer), bytes, kind});
  }
}

Task copy_task(const Runtime& runtime, Transfer transfer) {
  const auto [to, from, bytes] = transfer;
  Task task;
  task.name =
      std::string("copy ") + side(runtime, from) + " to " + side(runtime, to);
  add_access(runtime, from, bytes, AccessKind::kRead, &task);
  add_access(runtime, to, bytes, AccessKind::kWrite, &task);
  task.body = [target = reach(runtime, to), source = reach(runtime, from),
               size = bytes] {
    std::memmove(target, source, size);
    return Status::kOk;
  };
  return task;
}

Task fill_task(const Runtime& runtime, void* to, std::int32_t value,
               std::size_t bytes) {
  Task task;
  task.name = std::string("fill ") + side(runtime, to);
  add_access(runtime, to, bytes, AccessKind::kWrite, &task);
  task.body = [target = reach(runtime, to), value, bytes] {
    std::memset(target, value, bytes);
    return Status::kOk;
  };
  return task;
}

}  // namespace

Status Runtime::run_now(const Task& task, Status forbidden) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  if (!machine_->may_block()) {
    return machine_->fail(forbidden,
                          task.name +
                              ": a capture is in progress, and its mode or the "
                              "thread's forbids what blocks");
  }
  return machine_->run_on_host(call.lock, task);
}

Status Runtime::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) {
    return Status::kOk;
  }
  if (to == nullptr || from == nullptr) {
    return machine_->fail(Status::kInvalidParam, "copy: a pointer is null");
  }
  return run_now(copy_task(*this, {to, from, bytes}),
                 Status::kCaptureModeForbids);
}

// As CANN does it: with pageable memory, a wait for the stream and then a
// synchronous copy, because a device cannot reach such memory.
Status Runtime::copy_async(void* to, const void* from, std::size_t bytes,
                           Stream* stream) {
  if (bytes == 0) {
    return Status::kOk;
  }
  if (to == nullptr || from == nullptr) {
    return machine_->fail(Status::kInvalidParam,
                          "copy_async: a pointer is null");
  }
  Task task = copy_task(*this, {to, from, bytes});
  if (!is_pageable(*this, to) && !is_pageable(*this, from)) {
    return submit(stream, std::move(task));
  }
  const Status status = synchronize(stream, std::nullopt);
  if (status == Status::kStreamCaptured) {
    return machine_->fail(Status::kInvalidParam,
                          "copy_async: a capture cannot hold a copy of host "
                          "memory that is not pinned");
  }
  return status == Status::kOk ? run_now(task, Status::kCaptureBlocksAsync)
                               : status;
}

Status Runtime::fill(void* to, std::int32_t value, std::size_t bytes) {
  if (bytes == 0) {
    return Status::kOk;
  }
  if (to == nullptr) {
    return machine_->fail(Status::kInvalidParam, "fill: the pointer is null");
  }
  return run_now(fill_task(*this, to, value, bytes),
                 Status::kCaptureModeForbids);
}

Status Runtime::fill_async(void* to, std::int32_t value, std::size_t bytes,
                           Stream* stream) {
  if (bytes == 0) {
    return Status::kOk;
  }
  if (to == nullptr) {
    return machine_->fail(Status::kInvalidParam,
                          "fill_async: the pointer is null");
  }
  return submit(stream, fill_task(*this, to, value, bytes));
}

}  // namespace ascend_sim
