// The memory of one device: mapped twice, handed out in blocks, poisoned.
// Knows nothing of tasks; whoever calls holds the machine's mutex, except for
// the constant functions on addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "runtime/task.h"

namespace ascend_sim {

// A file without a name is mapped at two places. The view is what the host is
// given: it may not be touched, so that a host that dereferences a device
// address stops there with SIGSEGV. The shadow is what tasks read and write.
//
// Fresh and freed blocks hold 0xff bytes. Filling gigabytes that nobody reads
// would cost real memory, so whole chunks are only marked, and filled when the
// first access that a task declared reaches them: nobody can tell the
// difference. The parts of a block at its ends that share a chunk with other
// blocks are filled at once.
class DeviceMemory final {
 public:
  static constexpr std::size_t kGranule = 512;
  static constexpr std::size_t kChunk = std::size_t{64} << 10U;

  struct Block {
    Address address = 0;
    std::size_t bytes = 0;     // as asked for
    std::size_t reserved = 0;  // rounded up to granules
    std::uint64_t serial = 0;  // differs for every allocation
  };

  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Takes the block that was freed last of those that fit; nothing if none
  // does.
  [[nodiscard]] std::optional<Block> allocate(std::size_t bytes,
                                              std::uint64_t serial);
  // The block that began at the address, or nothing.
  std::optional<Block> free(Address address);
  // The live block that holds all these bytes.
  [[nodiscard]] const Block* find(Address address, std::size_t bytes) const;
  // The latest block that was freed and held this address.
  [[nodiscard]] const Block* find_freed(Address address) const;
  // Makes the poison of these bytes real before somebody accesses them.
  void materialize(Address address, std::size_t bytes);

  [[nodiscard]] std::size_t total_bytes() const { return bytes_; }
  [[nodiscard]] std::size_t free_bytes() const { return free_bytes_; }
  [[nodiscard]] bool contains(Address address) const {
    return address >= view_ && address - view_ < bytes_;
  }
  [[nodiscard]] std::size_t offset(Address address) const {
    return address - view_;
  }
  [[nodiscard]] std::byte* shadow(Address address) const {
    return shadow_ + (address - view_);
  }

 private:
  struct Hole {
    Address address = 0;
    std::size_t bytes = 0;
  };

  std::optional<Address> take(std::size_t reserved);
  void coalesce();
  void poison(Address address, std::size_t bytes);
  void remember_freed(const Block& block);

  std::size_t bytes_ = 0;
  std::size_t free_bytes_ = 0;
  int file_ = -1;
  void* view_mapping_ = nullptr;
  Address view_ = 0;  // its address
  std::byte* shadow_ = nullptr;
  std::list<Hole> holes_;  // latest first
  std::map<Address, Block> blocks_;
  std::list<Block> freed_;  // latest first, a few
  std::vector<bool> lazy_;  // by chunk: poison is still to be written
};

}  // namespace ascend_sim
