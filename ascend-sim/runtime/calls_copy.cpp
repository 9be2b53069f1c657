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

Task copy_task(const Runtime& runtime, Transfer transfer) {
  const auto to = reinterpret_cast<Address>(transfer.to);
  const auto from = reinterpret_cast<Address>(transfer.from);
  const bool to_device = runtime.device_of(transfer.to).has_value();
  const bool from_device = runtime.device_of(transfer.from).has_value();
  Task task;
  task.name = std::string("copy ") + (from_device ? "device" : "host") +
              " to " + (to_device ? "device" : "host");
  if (from_device) {
    task.accesses.push_back({from, transfer.bytes, AccessKind::kRead});
  }
  if (to_device) {
    task.accesses.push_back({to, transfer.bytes, AccessKind::kWrite});
  }
  void* const target = to_device ? runtime.shadow(to) : transfer.to;
  const void* const source = from_device ? runtime.shadow(from) : transfer.from;
  task.body = [target, source, bytes = transfer.bytes] {
    std::memmove(target, source, bytes);
    return Status::kOk;
  };
  return task;
}

Task fill_task(const Runtime& runtime, void* to, std::int32_t value,
               std::size_t bytes) {
  const auto address = reinterpret_cast<Address>(to);
  const bool to_device = runtime.device_of(to).has_value();
  Task task;
  task.name = to_device ? "fill device" : "fill host";
  if (to_device) {
    task.accesses.push_back({address, bytes, AccessKind::kWrite});
  }
  void* const target = to_device ? runtime.shadow(address) : to;
  task.body = [target, value, bytes] {
    std::memset(target, value, bytes);
    return Status::kOk;
  };
  return task;
}

}  // namespace

Status Runtime::copy(void* to, const void* from, std::size_t bytes) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  if (bytes == 0) {
    return Status::kOk;
  }
  if (to == nullptr || from == nullptr) {
    return machine_->fail(Status::kInvalidParam, "copy: a pointer is null");
  }
  return machine_->run_on_host(call.lock, copy_task(*this, {to, from, bytes}));
}

Status Runtime::copy_async(void* to, const void* from, std::size_t bytes,
                           Stream* stream) {
  if (bytes == 0) {
    return Status::kOk;
  }
  if (to == nullptr || from == nullptr) {
    return machine_->fail(Status::kInvalidParam,
                          "copy_async: a pointer is null");
  }
  return submit(stream, copy_task(*this, {to, from, bytes}));
}

Status Runtime::fill(void* to, std::int32_t value, std::size_t bytes) {
  Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  if (bytes == 0) {
    return Status::kOk;
  }
  if (to == nullptr) {
    return machine_->fail(Status::kInvalidParam, "fill: the pointer is null");
  }
  return machine_->run_on_host(call.lock, fill_task(*this, to, value, bytes));
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
