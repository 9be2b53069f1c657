// Exports of libascendcl about memory and copies. Holds no memory itself.
#include <cstdint>

#include "abi/ascendcl/calls.h"

namespace {

using ascend_sim::Address;
using ascend_sim::Runtime;
using ascend_sim::Status;
using ascend_sim::Stream;
using ascend_sim::abi::code;
using ascend_sim::abi::missing;
using ascend_sim::abi::refuse;
using ascend_sim::abi::unsupported;
using ascend_sim::abi::with_stream;

[[nodiscard]] Address address_of(const void* pointer) {
  return reinterpret_cast<Address>(pointer);
}

aclError allocate(const char* function, void** pointer, std::size_t bytes) {
  if (pointer == nullptr) return missing(function, "devPtr");
  if (bytes == 0) {
    return refuse(Status::kInvalidParam, function, "size must not be 0");
  }
  Address address = 0;
  const Status status = Runtime::get().allocate(bytes, &address);
  // Device addresses are numbers to the runtime, pointers to CANN.
  *pointer = reinterpret_cast<void*>(address);
  return code(status);
}

aclError too_much(const char* function, std::size_t bytes, std::size_t room) {
  return refuse(Status::kInvalidParam, function,
                "count " + std::to_string(bytes) +
                    " exceeds the destination's " + std::to_string(room) +
                    " bytes");
}

}  // namespace

extern "C" {

aclError aclrtMalloc(void** pointer, std::size_t bytes,
                     aclrtMemMallocPolicy /*policy*/) {
  return allocate("aclrtMalloc", pointer, bytes);
}

aclError aclrtMallocAlign32(void** pointer, std::size_t bytes,
                            aclrtMemMallocPolicy /*policy*/) {
  return allocate("aclrtMallocAlign32", pointer, bytes);
}

aclError aclrtFree(void* pointer) {
  return code(Runtime::get().free(address_of(pointer)));
}

aclError aclrtMallocHost(void** pointer, std::size_t bytes) {
  if (pointer == nullptr) return missing("aclrtMallocHost", "hostPtr");
  return code(Runtime::get().allocate_host(bytes, pointer));
}

aclError aclrtMallocHostWithCfg(void** pointer, std::uint64_t bytes,
                                aclrtMallocConfig* /*configuration*/) {
  if (pointer == nullptr) return missing("aclrtMallocHostWithCfg", "ptr");
  return code(Runtime::get().allocate_host(bytes, pointer));
}

aclError aclrtFreeHost(void* pointer) {
  return code(Runtime::get().free_host(pointer));
}

aclError aclrtPointerGetAttributes(const void* pointer,
                                   aclrtPtrAttributes* attributes) {
  if (attributes == nullptr) {
    return missing("aclrtPointerGetAttributes", "attributes");
  }
  *attributes = {};
  if (const auto device = Runtime::get().device_of(pointer)) {
    attributes->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    attributes->location.id = static_cast<std::uint32_t>(*device);
  } else {
    attributes->location.type = Runtime::get().is_pinned(pointer)
                                    ? ACL_MEM_LOCATION_TYPE_HOST
                                    : ACL_MEM_LOCATION_TYPE_UNREGISTERED;
  }
  return ACL_SUCCESS;
}

aclError aclrtGetMemInfo(aclrtMemAttr /*attribute*/, std::size_t* free_bytes,
                         std::size_t* total_bytes) {
  if (free_bytes == nullptr || total_bytes == nullptr) {
    return missing("aclrtGetMemInfo", "free and total");
  }
  const Runtime::MemoryUse use = Runtime::get().memory_use();
  *free_bytes = use.free_bytes;
  *total_bytes = use.total_bytes;
  return ACL_SUCCESS;
}

aclError aclrtMemcpy(void* to, std::size_t room, const void* from,
                     std::size_t bytes, aclrtMemcpyKind /*kind*/) {
  if (bytes > room) return too_much("aclrtMemcpy", bytes, room);
  return code(Runtime::get().copy(to, from, bytes));
}

aclError aclrtMemcpyAsync(void* to, std::size_t room, const void* from,
                          std::size_t bytes, aclrtMemcpyKind /*kind*/,
                          aclrtStream stream) {
  if (bytes > room) return too_much("aclrtMemcpyAsync", bytes, room);
  return with_stream("aclrtMemcpyAsync", stream, [&](Stream* on) {
    return Runtime::get().copy_async(to, from, bytes, on);
  });
}

// The condition is that the host memory is pinned; the runtime's copies wait by
// themselves where it is not.
aclError aclrtMemcpyAsyncWithCondition(void* to, std::size_t room,
                                       const void* from, std::size_t bytes,
                                       aclrtMemcpyKind kind,
                                       aclrtStream stream) {
  return aclrtMemcpyAsync(to, room, from, bytes, kind, stream);
}

aclError aclrtMemset(void* to, std::size_t room, std::int32_t value,
                     std::size_t bytes) {
  if (bytes > room) return too_much("aclrtMemset", bytes, room);
  return code(Runtime::get().fill(to, value, bytes));
}

aclError aclrtMemsetAsync(void* to, std::size_t room, std::int32_t value,
                          std::size_t bytes, aclrtStream stream) {
  if (bytes > room) return too_much("aclrtMemsetAsync", bytes, room);
  return with_stream("aclrtMemsetAsync", stream, [&](Stream* on) {
    return Runtime::get().fill_async(to, value, bytes, on);
  });
}

// Virtual memory and sharing between processes are not simulated.

aclError aclrtReserveMemAddress(void**, std::size_t, std::size_t, void*,
                                std::uint64_t) {
  return unsupported("aclrtReserveMemAddress");
}

aclError aclrtReleaseMemAddress(void*) {
  return unsupported("aclrtReleaseMemAddress");
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle*, std::size_t,
                             const aclrtPhysicalMemProp*, std::uint64_t) {
  return unsupported("aclrtMallocPhysical");
}

aclError aclrtFreePhysical(aclrtDrvMemHandle) {
  return unsupported("aclrtFreePhysical");
}

aclError aclrtMapMem(void*, std::size_t, std::size_t, aclrtDrvMemHandle,
                     std::uint64_t) {
  return unsupported("aclrtMapMem");
}

aclError aclrtUnmapMem(void*) { return unsupported("aclrtUnmapMem"); }

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle, aclrtMemHandleType,
                                         std::uint64_t, std::uint64_t*) {
  return unsupported("aclrtMemExportToShareableHandle");
}

aclError aclrtMemImportFromShareableHandle(std::uint64_t, std::int32_t,
                                           aclrtDrvMemHandle*) {
  return unsupported("aclrtMemImportFromShareableHandle");
}

aclError aclrtMemSetPidToShareableHandle(std::uint64_t, std::int32_t*,
                                         std::size_t) {
  return unsupported("aclrtMemSetPidToShareableHandle");
}

aclError aclrtDeviceGetBareTgid(std::int32_t*) {
  return unsupported("aclrtDeviceGetBareTgid");
}

}  // extern "C"
