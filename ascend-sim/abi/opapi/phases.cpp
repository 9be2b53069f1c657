// See phases.h.
#include "abi/opapi/phases.h"

#include <memory>

namespace ascend_sim::abi {

aclnnStatus refused(const char* name, Status status, const std::string& what) {
  // Operators name themselves in what they say.
  const bool named = what.starts_with(name);
  return static_cast<aclnnStatus>(Runtime::get().fail(
      status, named ? what : std::string(name) + ": " + what));
}

aclnnStatus execute(const char* name, void* workspace,
                    std::uint64_t workspace_bytes, aclOpExecutor* executor,
                    aclrtStream stream) {
  if (executor == nullptr) {
    return refused(name, kNullOperand, "executor must not be null");
  }
  const std::unique_ptr<aclOpExecutor> owned(executor);
  Executor& prepared = owned->executor;
  if (prepared.workspace_bytes > 0) {
    if (workspace == nullptr || workspace_bytes < prepared.workspace_bytes) {
      return refused(name, kBadOperand,
                     "workspace must have " +
                         std::to_string(prepared.workspace_bytes) +
                         " bytes, got " + std::to_string(workspace_bytes));
    }
    prepared.task.accesses.push_back({reinterpret_cast<Address>(workspace),
                                      prepared.workspace_bytes,
                                      AccessKind::kWrite});
  }
  Stream* on = Runtime::get().find_stream(stream);
  if (on == nullptr) {
    return refused(name, Status::kInvalidHandle,
                   "the handle names no live stream");
  }
  return static_cast<aclnnStatus>(
      Runtime::get().submit(on, std::move(prepared.task)));
}

}  // namespace ascend_sim::abi
