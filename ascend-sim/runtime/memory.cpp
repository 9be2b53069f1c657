// Blocks, holes and poison of one device's memory.
// Checks no operand and reports nothing.
#include "runtime/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ascend_sim {
namespace {

constexpr int kPoison = 0xff;
constexpr std::size_t kFreedKept = 256;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

[[noreturn]] void stop(const char* call, std::size_t bytes) {
  std::fprintf(stderr,
               "ascend-sim: %s of %zu bytes of simulated device memory failed: "
               "%s; ask for less with ASCEND_SIM_MEMORY\n",
               call, bytes, std::strerror(errno));
  std::exit(2);
}

void* map(int file, std::size_t bytes, int protection) {
  void* const place =
      mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (place == MAP_FAILED) {
    stop("mmap", bytes);
  }
  return place;
}

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes)
    : bytes_(round_up(bytes, kChunk)), free_bytes_(bytes_) {
  file_ = memfd_create("ascend-sim", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes_)) != 0) {
    stop("memfd_create", bytes_);
  }
  view_mapping_ = map(file_, bytes_, PROT_NONE);
  view_ = reinterpret_cast<Address>(view_mapping_);
  shadow_ = static_cast<std::byte*>(map(file_, bytes_, PROT_READ | PROT_WRITE));
  holes_.push_back({view_, bytes_});
  lazy_.assign(bytes_ / kChunk, true);
}

DeviceMemory::~DeviceMemory() {
  munmap(view_mapping_, bytes_);
  munmap(shadow_, bytes_);
  close(file_);
}

std::optional<Address> DeviceMemory::take(std::size_t reserved) {
  const auto hole = std::ranges::find_if(
      holes_, [reserved](const Hole& each) { return each.bytes >= reserved; });
  if (hole == holes_.end()) {
    return std::nullopt;
  }
  const Address address = hole->address;
  hole->address += reserved;
  hole->bytes -= reserved;
  if (hole->bytes == 0) {
    holes_.erase(hole);
  }
  return address;
}

// Neighbouring holes are joined only when nothing else fits: joining them
// earlier would move the start of the hole that was freed last.
void DeviceMemory::coalesce() {
  holes_.sort(
      [](const Hole& a, const Hole& b) { return a.address < b.address; });
  for (auto hole = holes_.begin(); hole != holes_.end();) {
    const auto next = std::next(hole);
    if (next != holes_.end() && hole->address + hole->bytes == next->address) {
      hole->bytes += next->bytes;
      holes_.erase(next);
    } else {
      hole = next;
    }
  }
}

std::optional<DeviceMemory::Block> DeviceMemory::allocate(
    std::size_t bytes, std::uint64_t serial) {
  if (bytes == 0 || bytes > free_bytes_) {
    return std::nullopt;
  }
  const std::size_t reserved = round_up(bytes, kGranule);
  std::optional<Address> address = take(reserved);
  if (!address) {
    coalesce();
    address = take(reserved);
  }
  if (!address) {
    return std::nullopt;
  }
  const Block block{*address, bytes, reserved, serial};
  blocks_.emplace(block.address, block);
  free_bytes_ -= reserved;
  poison(block.address, reserved);
  return block;
}

std::optional<DeviceMemory::Block> DeviceMemory::free(Address address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) {
    return std::nullopt;
  }
  const Block block = found->second;
  blocks_.erase(found);
  free_bytes_ += block.reserved;
  holes_.push_front({block.address, block.reserved});
  poison(block.address, block.reserved);
  remember_freed(block);
  return block;
}

void DeviceMemory::remember_freed(const Block& block) {
  freed_.push_front(block);
  if (freed_.size() > kFreedKept) {
    freed_.pop_back();
  }
}

const DeviceMemory::Block* DeviceMemory::find(Address address,
                                              std::size_t bytes) const {
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) {
    return nullptr;
  }
  const Block& block = std::prev(after)->second;
  const std::size_t offset = address - block.address;
  const bool inside = offset <= block.bytes && bytes <= block.bytes - offset;
  return inside ? &block : nullptr;
}

const DeviceMemory::Block* DeviceMemory::find_freed(Address address) const {
  const auto found =
      std::ranges::find_if(freed_, [address](const Block& block) {
        return address >= block.address &&
               address - block.address < block.reserved;
      });
  return found == freed_.end() ? nullptr : &*found;
}

void DeviceMemory::poison(Address address, std::size_t bytes) {
  const std::size_t begin = address - view_;
  const std::size_t end = begin + bytes;
  const std::size_t first = round_up(begin, kChunk);
  const std::size_t last = end / kChunk * kChunk;
  const auto fill = [this](std::size_t from, std::size_t to) {
    materialize(view_ + from, to - from);
    std::memset(shadow_ + from, kPoison, to - from);
  };
  if (first >= last) {
    fill(begin, end);
    return;
  }
  if (begin < first) {
    fill(begin, first);
  }
  if (last < end) {
    fill(last, end);
  }
  // Gives the pages back: a freed block costs no memory until it is used.
  if (fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(first),
                static_cast<off_t>(last - first)) != 0) {
    stop("fallocate", last - first);
  }
  std::fill(lazy_.begin() + static_cast<std::ptrdiff_t>(first / kChunk),
            lazy_.begin() + static_cast<std::ptrdiff_t>(last / kChunk), true);
}

void DeviceMemory::materialize(Address address, std::size_t bytes) {
  if (bytes == 0) {
    return;
  }
  const std::size_t first = (address - view_) / kChunk;
  const std::size_t last = (address - view_ + bytes - 1) / kChunk;
  for (std::size_t chunk = first; chunk <= last; ++chunk) {
    if (lazy_[chunk]) {
      std::memset(shadow_ + chunk * kChunk, kPoison, kChunk);
      lazy_[chunk] = false;
    }
  }
}

}  // namespace ascend_sim
