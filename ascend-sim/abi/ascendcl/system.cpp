// Exports of libascendcl about the process: initialisation, versions, options,
// messages. Touches no device.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string_view>

#include "abi/ascendcl/calls.h"

namespace {

using ascend_sim::Runtime;
using ascend_sim::Status;
using ascend_sim::abi::code;
using ascend_sim::abi::missing;
using ascend_sim::abi::refuse;

// From 8.3.RC1 on torch_npu sets devices up lazily; from this driver on it asks
// the runtime which host memory is pinned.
constexpr std::string_view kCannVersion = "8.5.0";
constexpr std::string_view kDriverVersion = "25.5.0";

std::atomic<bool> initialized{false};

struct SystemOptions {
  std::mutex mutex;
  std::array<std::int64_t, 3> values{};  // by aclSysParamOpt
};

SystemOptions& system_options() {
  static SystemOptions& options = *new SystemOptions;  // lives to the very end
  return options;
}

aclError set_option(const char* function, aclSysParamOpt option,
                    std::int64_t value) {
  SystemOptions& options = system_options();
  const auto index = static_cast<std::size_t>(option);
  if (index >= options.values.size()) {
    return refuse(Status::kInvalidParam, function, "unknown option");
  }
  const std::scoped_lock lock(options.mutex);
  options.values[index] = value;
  return ACL_SUCCESS;
}

}  // namespace

extern "C" {

aclError aclInit(const char* /*configPath*/) {
  if (initialized.exchange(true)) {
    return code(Runtime::get().fail(Status::kRepeatInitialize,
                                    "aclInit: the process called it before"));
  }
  return ACL_SUCCESS;
}

aclError aclFinalize() {
  initialized.store(false);
  return ACL_SUCCESS;
}

// Valid until the thread's next call, as CANN documents. Null if nothing
// failed. The text lies in an array because libraries ask after the
// destructors of thread-local objects have run.
const char* aclGetRecentErrMsg() {
  thread_local std::array<char, 1024> text;
  const std::string message = Runtime::get().recent_message();
  if (message.empty()) return nullptr;
  std::snprintf(text.data(), text.size(), "%s", message.c_str());
  return text.data();
}

// Nothing in a simulation reads the log of the device's software.
void aclAppLog(aclLogLevel /*level*/, const char* /*function*/,
               const char* /*file*/, std::uint32_t /*line*/,
               const char* /*format*/, ...) {}

aclError aclsysGetCANNVersion(aclCANNPackageName name,
                              aclCANNPackageVersion* version) {
  if (version == nullptr) return missing("aclsysGetCANNVersion", "version");
  const std::string_view text =
      name == ACL_PKG_NAME_DRIVER ? kDriverVersion : kCannVersion;
  *version = {};
  std::ranges::copy(text, version->version);
  return ACL_SUCCESS;
}

aclError aclsysGetVersionStr(char* package, char* version) {
  if (package == nullptr) return missing("aclsysGetVersionStr", "pkgName");
  if (version == nullptr) return missing("aclsysGetVersionStr", "versionStr");
  const std::string_view text =
      std::string_view(package) == "driver" ? kDriverVersion : kCannVersion;
  *std::ranges::copy(text, version).out = '\0';
  return ACL_SUCCESS;
}

aclError aclGetCannAttributeList(const aclCannAttr** attributes,
                                 std::size_t* count) {
  static constexpr std::array kAttributes = {ACL_CANN_ATTR_INF_NAN,
                                             ACL_CANN_ATTR_BF16};
  if (attributes == nullptr || count == nullptr) {
    return missing("aclGetCannAttributeList", "cannAttrList and num");
  }
  *attributes = kAttributes.data();
  *count = kAttributes.size();
  return ACL_SUCCESS;
}

aclError aclGetCannAttribute(aclCannAttr attribute, std::int32_t* value) {
  if (value == nullptr) return missing("aclGetCannAttribute", "value");
  *value = attribute == ACL_CANN_ATTR_INF_NAN || attribute == ACL_CANN_ATTR_BF16
               ? 1
               : 0;
  return ACL_SUCCESS;
}

// Kept and handed back: every operator here is deterministic anyway.
aclError aclrtSetSysParamOpt(aclSysParamOpt option, std::int64_t value) {
  return set_option("aclrtSetSysParamOpt", option, value);
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt option, std::int64_t value) {
  return set_option("aclrtCtxSetSysParamOpt", option, value);
}

aclError aclrtGetSysParamOpt(aclSysParamOpt option, std::int64_t* value) {
  if (value == nullptr) return missing("aclrtGetSysParamOpt", "value");
  SystemOptions& options = system_options();
  const auto index = static_cast<std::size_t>(option);
  if (index >= options.values.size()) {
    return refuse(Status::kInvalidParam, "aclrtGetSysParamOpt",
                  "unknown option");
  }
  const std::scoped_lock lock(options.mutex);
  *value = options.values[index];
  return ACL_SUCCESS;
}

// The sticky failure of an asynchronous operation; peeking leaves it, and so
// does getting it: nothing but the end of the process clears it.
aclError aclrtPeekAtLastError(aclrtLastErrLevel /*level*/) {
  return code(Runtime::get().last_async_error());
}

aclError aclrtGetLastError(aclrtLastErrLevel /*level*/) {
  return code(Runtime::get().last_async_error());
}

}  // extern "C"
