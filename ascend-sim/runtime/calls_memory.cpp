// Runtime's calls on memory: the device's and the host's pinned.
// Moves no bytes.
#include <algorithm>
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
  const auto block = memory.allocate(bytes, machine_->allocations + 1);
  if (!block) {
    return machine_->fail(Status::kOutOfMemory,
                          "allocate: no room for " + std::to_string(bytes) +
                              " bytes on device " + std::to_string(device()) +
                              ", " + std::to_string(memory.free_bytes()) +
                              " of " + std::to_string(memory.total_bytes()) +
                              " are free");
  }
  ++machine_->allocations;
  *address = block->address;
  return Status::kOk;
}

Status Runtime::free(Address address) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  DeviceMemory* const memory = machine_->memory_of(address);
  if (memory == nullptr || !memory->free(address)) {
    return machine_->fail(Status::kMemoryFree,
                          "free: no block starts at this address");
  }
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
  machine_->host_blocks.emplace(*pointer, bytes);
  return Status::kOk;
}

Status Runtime::free_host(void* pointer) {
  const Call call(*machine_);
  if (!call) {
    return Status::kInternal;
  }
  if (machine_->host_blocks.erase(pointer) == 0) {
    return machine_->fail(Status::kMemoryFree,
                          "free_host: no pinned block starts at this address");
  }
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
  const auto address = reinterpret_cast<Address>(pointer);
  // A program pins few blocks and asks seldom.
  return call && std::any_of(machine_->host_blocks.begin(),
                             machine_->host_blocks.end(),
                             [&](const auto& block) {
                               const auto begin =
                                   reinterpret_cast<Address>(block.first);
                               return address >= begin &&
                                      address - begin < block.second;
                             });
}

std::byte* Runtime::shadow(Address address) const {
  const DeviceMemory* const memory = machine_->memory_of(address);
  return memory == nullptr ? nullptr : memory->shadow(address);
}

}  // namespace ascend_sim
