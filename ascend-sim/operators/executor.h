// What an operator's first phase hands to its second. Runs nothing.
#pragma once

#include <cstdint>

#include "runtime/task.h"

namespace ascend_sim {

// The task owns copies of all descriptors: the caller destroys its own as soon
// as the second phase returns.
struct Executor {
  Task task;
  std::uint64_t workspace_bytes = 0;
};

}  // namespace ascend_sim
