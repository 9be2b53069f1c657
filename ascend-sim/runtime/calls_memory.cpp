// Runtime's calls on memory: the device's and the host's pinned.
// Moves no bytes.
#include <cstdlib>

#include "runtime/machine.h"
#include "runtime/runtime.h"

namespace ascend_sim {

Status Runtime::allocate(std::size_t bytes, Address* address) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  if (bytes == 0 || address == nullptr) {
    return machine_->fail(Status::kInvalidParam,
                          "allocate: bytes must be above 0, and the result's "
                          "address must be given");
  }
  DeviceMemory& memory =
      *machine_->memories[static_cast<std::size_t>(device())];
  const bool fails = machine_->faults.hit("malloc");
  const auto block =
      fails ? std::nullopt : memory.allocate(bytes, machine_->allocations + 1);
  if (!block) {
    return machine_->fail(
        Status::kOutOfMemory,
        "allocate: no room for " + std::to_string(bytes) + " bytes on device " +
            std::to_string(device()) + ", " +
            std::to_string(memory.free_bytes()) + " of " +
            std::to_string(memory.total_bytes()) + " are free" +
            (fails ? ", and ASCEND_SIM_FAULT asks for it" : ""));
  }
  ++machine_->allocations;
  *address = block->address;
  machine_->note("allocate", "memory",
                 {{"bytes", std::to_string(bytes)},
                  {"block", machine_->place_of(block->address)}});
  return Status::kOk;
}

Status Runtime::free(Address address) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  DeviceMemory* const memory = machine_->memory_of(address);
  const auto block = memory == nullptr ? std::nullopt : memory->free(address);
  if (!block) {
    const bool again = memory != nullptr &&
                       memory->find_freed(address) != nullptr &&
                       memory->find(address, 1) == nullptr;
    machine_->reports.add(
        again ? "double-free" : "stray-free", "",
        "free of an address at which no block begins" +
            std::string(again ? ": it was freed before" : ""));
    return machine_->fail(Status::kMemoryFree,
                          "free: no block begins at this address");
  }
  // free() waits for nothing: what uses the block must be known to be over.
  machine_->report_freed({address, block->reserved, AccessKind::kWrite});
  machine_->note("free", "memory", {{"block", machine_->place_of(address)}});
  return Status::kOk;
}

Status Runtime::allocate_host(std::size_t bytes, void** pointer) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  constexpr std::size_t kPage = 4096;
  if (bytes == 0 || pointer == nullptr) {
    return machine_->fail(Status::kInvalidParam,
                          "allocate_host: bytes must be above 0, and the "
                          "result's address must be given");
  }
  if (posix_memalign(pointer, kPage, bytes) != 0) {
    return machine_->fail(
        Status::kOutOfMemory,
        "allocate_host: no room for " + std::to_string(bytes) + " bytes");
  }
  machine_->pinned.emplace(reinterpret_cast<Address>(*pointer),
                           Machine::Pinned{*pointer, bytes});
  return Status::kOk;
}

Status Runtime::free_host(void* pointer) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  const auto found = machine_->pinned.find(reinterpret_cast<Address>(pointer));
  if (found == machine_->pinned.end()) {
    machine_->reports.add("stray-free", "host",
                          "free_host of an address at which no pinned block "
                          "begins");
    return machine_->fail(Status::kMemoryFree,
                          "free_host: no pinned block begins at this address");
  }
  machine_->report_freed(
      {found->first, found->second.bytes, AccessKind::kWrite});
  machine_->pinned.erase(found);
  std::free(pointer);
  return Status::kOk;
}

Runtime::MemoryUse Runtime::memory_use() const {
  const Call call(*machine_);
  if (!call) {
    return {};
  }
  const DeviceMemory& memory =
      *machine_->memories[static_cast<std::size_t>(device())];
  return {memory.free_bytes(), memory.total_bytes()};
}

std::optional<std::int32_t> Runtime::device_of(const void* pointer) const {
  const auto address = reinterpret_cast<Address>(pointer);
  for (std::size_t i = 0; i < machine_->memories.size(); ++i) {
    if (machine_->memories[i]->contains(address)) {
      return static_cast<std::int32_t>(i);
    }
  }
  return std::nullopt;
}

bool Runtime::live(Address address, std::size_t bytes) const {
  const Call call(*machine_);
  const DeviceMemory* const memory = machine_->memory_of(address);
  return call && memory != nullptr && memory->find(address, bytes) != nullptr;
}

bool Runtime::is_pinned(const void* pointer) const {
  const Call call(*machine_);
  return call && machine_->is_pinned(reinterpret_cast<Address>(pointer), 1);
}

std::byte* Runtime::shadow(Address address) const {
  const DeviceMemory* const memory = machine_->memory_of(address);
  return memory == nullptr ? nullptr : memory->shadow(address);
}

}  // namespace ascend_sim
