// Exports of libascendcl for CANN's profiler, which torch_npu and the launcher
// libraries feed. There is no profiler here: nothing asks for what they would
// report, and what they report all the same is dropped.
#include <chrono>
#include <functional>
#include <string_view>

#include "profiling/aprof_pub.h"

extern "C" {

int32_t MsprofRegisterCallback(uint32_t /*moduleId*/,
                               ProfCommandHandle /*handle*/) {
  return 0;
}

int32_t MsprofReportApi(uint32_t /*nonPersistantFlag*/,
                        const MsprofApi* /*api*/) {
  return 0;
}

int32_t MsprofReportCompactInfo(uint32_t /*nonPersistantFlag*/,
                                const VOID_PTR /*data*/, uint32_t /*length*/) {
  return 0;
}

int32_t MsprofReportAdditionalInfo(uint32_t /*nonPersistantFlag*/,
                                   const VOID_PTR /*data*/,
                                   uint32_t /*length*/) {
  return 0;
}

uint64_t MsprofGetHashId(const char* hash_info, size_t length) {
  return std::hash<std::string_view>()({hash_info, length});
}

uint64_t MsprofSysCycleTime() {
  return static_cast<uint64_t>(
      std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // extern "C"
