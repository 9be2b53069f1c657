// A unit of work for a stream, and the device memory that it touches.
// Runs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/status.h"

namespace ascend_sim {

// A device address as the host sees it. The host must never dereference it;
// Runtime::shadow gives the bytes behind it to tasks.
using Address = std::uintptr_t;

enum class AccessKind : std::uint8_t { kRead, kWrite };

// Bytes of device memory, or of pinned host memory, that a task touches. A
// strided operand gives one access for each contiguous run, or its whole reach
// where runs are many.
struct Access {
  Address address = 0;
  std::size_t bytes = 0;
  AccessKind kind = AccessKind::kRead;
};

struct Task {
  // Of the operator or kernel, e.g. "aclnnRmsNorm"; faults and traces name it.
  std::string name;
  // Every operand: checked against live allocations at submission and again
  // when the task runs, and for races.
  std::vector<Access> accesses;
  // Runs on a worker, once for each submission or replay. Owns all it reads
  // but device memory and pinned memory. May be empty. Calls nothing of the
  // Runtime but shadow(), and neither does its destructor.
  std::function<Status()> body;
  // Arguments for the trace, as name and value.
  std::vector<std::pair<std::string, std::string>> notes;
};

}  // namespace ascend_sim
