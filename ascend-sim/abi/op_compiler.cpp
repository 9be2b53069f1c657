// Exports of libacl_op_compiler: refuses each operator that torch_npu compiles
// because it found no aclnn symbol, by name. Compiles nothing.
#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#include "abi/ascendcl/calls.h"
#include "acl/acl_op_compiler.h"

namespace {

using ascend_sim::Runtime;
using ascend_sim::Status;
using ascend_sim::abi::missing;
using ascend_sim::abi::refuse;

aclError refuse_operator(const char* function, const char* type) {
  const std::string name = type == nullptr ? "without a name" : type;
  Runtime::get().fail(
      Status{ACL_ERROR_OP_NOT_FOUND},
      std::string(function) + ": operator " + name + " is not simulated");
  return ACL_ERROR_OP_NOT_FOUND;
}

struct Options {
  std::mutex mutex;
  std::array<std::string, ACL_OP_DEBUG_OPTION + 1> values;  // by aclCompileOpt
};

Options& options() {
  static Options& all = *new Options;  // lives to the very end
  return all;
}

}  // namespace

extern "C" {

aclError aclopCompileAndExecute(const char* type, int,
                                const aclTensorDesc* const[],
                                const aclDataBuffer* const[], int,
                                const aclTensorDesc* const[],
                                aclDataBuffer* const[], const aclopAttr*,
                                aclopEngineType, aclopCompileType, const char*,
                                aclrtStream) {
  return refuse_operator("aclopCompileAndExecute", type);
}

aclError aclopCompileAndExecuteV2(const char* type, int, aclTensorDesc*[],
                                  aclDataBuffer*[], int, aclTensorDesc*[],
                                  aclDataBuffer*[], aclopAttr*, aclopEngineType,
                                  aclopCompileType, const char*, aclrtStream) {
  return refuse_operator("aclopCompileAndExecuteV2", type);
}

// Options are kept and handed back; with nothing to compile they change
// nothing.

aclError aclSetCompileopt(aclCompileOpt option, const char* value) {
  if (value == nullptr) return missing("aclSetCompileopt", "value");
  Options& all = options();
  const std::scoped_lock lock(all.mutex);
  all.values.at(option) = value;
  return ACL_SUCCESS;
}

std::size_t aclGetCompileoptSize(aclCompileOpt option) {
  Options& all = options();
  const std::scoped_lock lock(all.mutex);
  return all.values.at(option).size() + 1;
}

aclError aclGetCompileopt(aclCompileOpt option, char* value,
                          std::size_t length) {
  if (value == nullptr) return missing("aclGetCompileopt", "value");
  Options& all = options();
  const std::scoped_lock lock(all.mutex);
  const std::string& kept = all.values.at(option);
  if (length < kept.size() + 1) {
    return refuse(Status::kInvalidParam, "aclGetCompileopt",
                  "length must be at least " + std::to_string(kept.size() + 1));
  }
  std::memcpy(value, kept.c_str(), kept.size() + 1);
  return ACL_SUCCESS;
}

}  // extern "C"
