// Launches a registered kernel onto a stream, as a host stub asks for it.
// Knows no kernel's arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "launchers/registry.h"
#include "runtime/runtime.h"
#include "runtime/status.h"

namespace ascend_sim {

struct LaunchRequest {
  void* binary = nullptr;  // the registry's handle
  std::uint64_t key = 0;   // of the kernel in the binary
  std::uint32_t cores = 0;
  std::span<const std::byte> block;  // read before the call returns
  void* stream = nullptr;            // null: the default stream
};

// Refuses at once what no runtime accepts: an unknown binary, key or stream, a
// block of the wrong size, no cores, a kernel that is not simulated.
// A block whose contents make no sense is accepted, as hardware accepts it:
// there is a report of kind "argument-block", and the task fails.
[[nodiscard]] Status launch(Runtime& runtime, const Registry& registry,
                            const LaunchRequest& request);

}  // namespace ascend_sim
