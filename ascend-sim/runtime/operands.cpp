// Operands: which block holds them, and what is wrong with them.
// Decides no status.
#include <array>
#include <cstdio>
#include <string>

#include "runtime/machine.h"

namespace ascend_sim {
DeviceMemory* Runtime::Machine::memory_of(Address address) const {
  for (const auto& memory : memories) {
    if (memory->contains(address)) {
      return memory.get();
    }
  }
  return nullptr;
}

bool Runtime::Machine::is_pinned(Address address, std::size_t bytes) const {
  const auto after = pinned.upper_bound(address);
  if (after == pinned.begin()) {
    return false;
  }
  const auto& [begin, block] = *std::prev(after);
  const std::size_t offset = address - begin;
  return offset < block.bytes && bytes <= block.bytes - offset;
}

std::uint64_t Runtime::Machine::serial_of(const Access& access) const {
  const DeviceMemory* const memory = memory_of(access.address);
  if (memory == nullptr) {
    return is_pinned(access.address, access.bytes) ? 1 : 0;
  }
  const DeviceMemory::Block* const block =
      memory->find(access.address, access.bytes);
  return block == nullptr ? 0 : block->serial;
}

std::string Runtime::Machine::place_of(Address address) const {
  std::array<char, 64> text{};
  for (std::size_t device = 0; device < memories.size(); ++device) {
    if (memories[device]->contains(address)) {
      std::snprintf(text.data(), text.size(), "%#zx of device %zu",
                    memories[device]->offset(address), device);
      return text.data();
    }
  }
  return "the host's memory";
}

std::string Runtime::Machine::describe(const Access& access) const {
  return (access.kind == AccessKind::kRead ? "reads " : "writes ") +
         std::to_string(access.bytes) + " bytes at " + place_of(access.address);
}

void Runtime::Machine::report_outside(const std::string& who,
                                      const std::string& key,
                                      const Access& access) {
  const DeviceMemory* const memory = memory_of(access.address);
  const DeviceMemory::Block* const freed =
      memory == nullptr ? nullptr : memory->find_freed(access.address);
  const std::string what = who + " " + describe(access);
  if (freed != nullptr && memory->find(access.address, 1) == nullptr) {
    reports.add("use-after-free", key,
                what + ", in a block of " + std::to_string(freed->bytes) +
                    " bytes that was freed");
  } else {
    reports.add("out-of-bounds", key, what + ", which no live block holds");
  }
}

void Runtime::Machine::report_races(const std::vector<Races::Site>& earlier,
                                    const std::string& who,
                                    const std::string& key,
                                    const Access& access) {
  for (const Races::Site& site : earlier) {
    const std::string& name = site.task->name;
    const std::string stream = std::to_string(site.stream);
    std::string pair = name;
    pair.append("@").append(stream).append("/").append(key);
    std::string text = who;
    text.append(" ").append(describe(access));
    text.append(" while ").append(name).append(" (stream ").append(stream);
    text.append(", task ").append(std::to_string(site.sequence)).append(") ");
    text.append(describe(site.access));
    text.append(
        ": no stream's order, event or synchronisation puts one before the "
        "other");
    reports.add("race", pair, std::move(text));
  }
}

void Runtime::Machine::report_freed(const Access& block) {
  for (const Races::Site& site : races.find(block, host)) {
    reports.add(
        "use-after-free", site.task->name + "@" + std::to_string(site.stream),
        "a block at " + place_of(block.address) + " is freed while " +
            site.task->name + " (stream " + std::to_string(site.stream) +
            ", task " + std::to_string(site.sequence) + ") " +
            describe(site.access) + ": the host has not waited for it");
  }
  races.forget(block.address, block.bytes);
}

void Runtime::Machine::materialize(const Task& task) {
  for (const Access& access : task.accesses) {
    if (DeviceMemory* const memory = memory_of(access.address)) {
      memory->materialize(access.address, access.bytes);
    }
  }
}

}  // namespace ascend_sim
