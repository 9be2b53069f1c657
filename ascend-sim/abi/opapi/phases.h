// The two phases of every aclnn function, and what its operands are. Knows no
// operator.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "abi/export.h"
#include "acl/acl.h"
#include "operators/executor.h"
#include "operators/operand.h"
#include "operators/tensor.h"
#include "runtime/runtime.h"

// CANN's headers leave these to the implementation.
struct aclTensor {
  ascend_sim::Tensor tensor;
};
struct aclScalar {
  ascend_sim::Scalar scalar;
};
struct aclIntArray {
  std::vector<std::int64_t> values;
};
struct aclTensorList {
  std::vector<const aclTensor*> tensors;
};
struct aclOpExecutor {
  ascend_sim::Executor executor;
};

using aclnnStatus = std::int32_t;

namespace ascend_sim::abi {

// An operand that must be given.
[[nodiscard]] inline const Tensor& given(const aclTensor* operand) {
  if (operand == nullptr) {
    throw OperandError(kNullOperand, "a tensor must not be null");
  }
  return operand->tensor;
}

[[nodiscard]] inline const Scalar& given(const aclScalar* operand) {
  if (operand == nullptr) {
    throw OperandError(kNullOperand, "a scalar must not be null");
  }
  if (!is_simulated(operand->scalar.dtype)) {
    throw OperandError(
        kBadOperand,
        "a scalar of " + name_of(operand->scalar.dtype) + " is not simulated");
  }
  return operand->scalar;
}

[[nodiscard]] inline const Sizes& given(const aclIntArray* operand) {
  static const Sizes none;
  return operand == nullptr ? none : operand->values;
}

aclnnStatus refused(const char* name, Status status, const std::string& what);

[[nodiscard]] inline Executor as_executor(Executor executor) {
  return executor;
}

[[nodiscard]] inline Executor as_executor(Task task) {
  return {std::move(task), 0};
}

// The first phase: keeps what make() prepares, or says why it refused.
template <class Make>
aclnnStatus prepare(const char* name, std::uint64_t* workspace_bytes,
                    aclOpExecutor** executor, Make&& make) {
  if (workspace_bytes == nullptr || executor == nullptr) {
    return refused(name, kNullOperand,
                   "workspaceSize and executor must not be null");
  }
  try {
    *executor = new aclOpExecutor{as_executor(std::forward<Make>(make)())};
    *workspace_bytes = (*executor)->executor.workspace_bytes;
    return 0;
  } catch (const OperandError& error) {
    return refused(name, error.status(), error.what());
  }
}

// The second phase: submits the task and forgets the executor.
aclnnStatus execute(const char* name, void* workspace,
                    std::uint64_t workspace_bytes, aclOpExecutor* executor,
                    aclrtStream stream);

}  // namespace ascend_sim::abi

// The second phase is the same for all.
#define ASCEND_SIM_EXECUTE(NAME)                                               \
  ASCEND_SIM_EXPORT aclnnStatus aclnn##NAME(                                   \
      void* workspace, std::uint64_t bytes, aclOpExecutor* executor,           \
      aclrtStream stream) {                                                    \
    return ascend_sim::abi::execute("aclnn" #NAME, workspace, bytes, executor, \
                                    stream);                                   \
  }
