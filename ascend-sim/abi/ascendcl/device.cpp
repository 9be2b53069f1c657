// Exports of libascendcl about devices and contexts. Waits for nothing but in
// the synchronisations.
#include <array>
#include <cstdint>
#include <cstring>

#include "abi/ascendcl/calls.h"
#include "abi/ascendcl/soc.h"

namespace {

using ascend_sim::Runtime;
using ascend_sim::Status;
using ascend_sim::abi::code;
using ascend_sim::abi::facts_of;
using ascend_sim::abi::missing;
using ascend_sim::abi::refuse;

// A context is its device: the handle is the address of the device's entry.
constexpr std::int32_t kMostDevices = 64;
std::array<char, kMostDevices> contexts;

[[nodiscard]] bool is_device(std::int64_t device) {
  return device >= 0 && device < Runtime::get().settings().devices;
}

aclError no_such_device(const char* function, std::int64_t device) {
  return refuse(Status::kInvalidDevice, function,
                "no device " + std::to_string(device));
}

}  // namespace

extern "C" {

aclError aclrtGetDeviceCount(std::uint32_t* count) {
  if (count == nullptr) return missing("aclrtGetDeviceCount", "count");
  *count = static_cast<std::uint32_t>(Runtime::get().settings().devices);
  return ACL_SUCCESS;
}

aclError aclrtSetDevice(std::int32_t device) {
  return code(Runtime::get().set_device(device));
}

aclError aclrtGetDevice(std::int32_t* device) {
  if (device == nullptr) return missing("aclrtGetDevice", "deviceId");
  *device = Runtime::get().device();
  return ACL_SUCCESS;
}

// The process keeps its devices to the end, so there is nothing to give back.
aclError aclrtResetDevice(std::int32_t device) {
  return is_device(device) ? ACL_SUCCESS
                           : no_such_device("aclrtResetDevice", device);
}

aclError aclrtGetLogicDevIdByUserDevId(const std::int32_t device,
                                       std::int32_t* const logical) {
  if (logical == nullptr) {
    return missing("aclrtGetLogicDevIdByUserDevId", "logicDevId");
  }
  *logical = device;
  return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  if (context == nullptr) return missing("aclrtGetCurrentContext", "context");
  *context = &contexts.at(static_cast<std::size_t>(Runtime::get().device()));
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  const auto device = static_cast<char*>(context) - contexts.data();
  if (!is_device(device)) {
    return refuse(Status::kInvalidHandle, "aclrtSetCurrentContext",
                  "the handle names no context");
  }
  return code(Runtime::get().set_device(static_cast<std::int32_t>(device)));
}

aclError aclrtGetPrimaryCtxState(std::int32_t device, std::uint32_t* flags,
                                 std::int32_t* active) {
  if (!is_device(device)) {
    return no_such_device("aclrtGetPrimaryCtxState", device);
  }
  if (flags != nullptr) *flags = 0;
  if (active != nullptr) *active = 1;
  return ACL_SUCCESS;
}

const char* aclrtGetSocName() { return Runtime::get().settings().soc.c_str(); }

aclError aclrtGetDeviceInfo(std::uint32_t device, aclrtDevAttr attribute,
                            std::int64_t* value) {
  if (value == nullptr) return missing("aclrtGetDeviceInfo", "value");
  if (!is_device(device)) return no_such_device("aclrtGetDeviceInfo", device);
  const auto facts = facts_of(Runtime::get().settings().soc);
  switch (attribute) {
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
      *value = facts.cube_cores;
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
      *value = facts.vector_cores;
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE:
      *value = ascend_sim::abi::kUnifiedBufferBytes;
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
      *value = ascend_sim::abi::kL2Bytes;
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      *value =
          static_cast<std::int64_t>(Runtime::get().settings().memory_bytes);
      return ACL_SUCCESS;
    default:
      return refuse(
          Status::kUnsupported, "aclrtGetDeviceInfo",
          "attribute " + std::to_string(attribute) + " is not simulated");
  }
}

aclError aclGetDeviceCapability(std::uint32_t device, aclDeviceInfo info,
                                std::int64_t* value) {
  switch (info) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
      return aclrtGetDeviceInfo(device, ACL_DEV_ATTR_AICORE_CORE_NUM, value);
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      return aclrtGetDeviceInfo(device, ACL_DEV_ATTR_VECTOR_CORE_NUM, value);
    case ACL_DEVICE_INFO_L2_SIZE:
      return aclrtGetDeviceInfo(device, ACL_DEV_ATTR_L2_CACHE_SIZE, value);
    default:
      return refuse(Status::kInvalidParam, "aclGetDeviceCapability",
                    "unknown capability");
  }
}

aclError aclrtGetDeviceResLimit(std::int32_t device, aclrtDevResLimitType type,
                                std::uint32_t* value) {
  if (value == nullptr) return missing("aclrtGetDeviceResLimit", "value");
  if (!is_device(device)) {
    return no_such_device("aclrtGetDeviceResLimit", device);
  }
  const auto facts = facts_of(Runtime::get().settings().soc);
  *value = static_cast<std::uint32_t>(
      type == ACL_RT_DEV_RES_CUBE_CORE ? facts.cube_cores : facts.vector_cores);
  return ACL_SUCCESS;
}

aclError aclrtDeviceGetUuid(std::int32_t device, aclrtUuid* uuid) {
  if (uuid == nullptr) return missing("aclrtDeviceGetUuid", "uuid");
  if (!is_device(device)) return no_such_device("aclrtDeviceGetUuid", device);
  std::memset(uuid, 0, sizeof(*uuid));
  std::memcpy(uuid, &device, sizeof(device));
  return ACL_SUCCESS;
}

// Devices share one address space, so each reaches the other.
aclError aclrtDeviceCanAccessPeer(std::int32_t* can, std::int32_t device,
                                  std::int32_t peer) {
  if (can == nullptr) {
    return missing("aclrtDeviceCanAccessPeer", "canAccessPeer");
  }
  *can = is_device(device) && is_device(peer) && device != peer ? 1 : 0;
  return ACL_SUCCESS;
}

aclError aclrtDeviceEnablePeerAccess(std::int32_t peer,
                                     std::uint32_t /*flags*/) {
  return is_device(peer) ? ACL_SUCCESS
                         : no_such_device("aclrtDeviceEnablePeerAccess", peer);
}

aclError aclrtSynchronizeDevice() {
  return code(Runtime::get().synchronize_device(std::nullopt));
}

aclError aclrtSynchronizeDeviceWithTimeout(std::int32_t timeout) {
  return code(
      Runtime::get().synchronize_device(ascend_sim::abi::timeout_of(timeout)));
}

// Only nonfinite arithmetic is simulated, which is what these chips default
// to.
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  if (mode == ACL_RT_OVERFLOW_MODE_INFNAN) return ACL_SUCCESS;
  return refuse(Status::kUnsupported, "aclrtSetDeviceSatMode",
                "saturation is not simulated");
}

// A simulated operator ends by itself, or hangs because a fault asks for it.
aclError aclrtSetOpExecuteTimeOut(std::uint32_t /*timeout*/) {
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutV2(std::uint64_t timeout,
                                    std::uint64_t* actual) {
  if (actual != nullptr) *actual = timeout;
  return ACL_SUCCESS;
}

aclError aclrtSetOpWaitTimeout(std::uint32_t /*timeout*/) {
  return ACL_SUCCESS;
}

}  // extern "C"
