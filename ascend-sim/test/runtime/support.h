// Small machines and programs for the runtime's tests.
// Expects nothing itself.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/runtime.h"

namespace ascend_sim {

inline Settings small_settings(std::uint64_t seed = 1) {
  Settings settings;
  settings.seed = seed;
  settings.memory_bytes = std::size_t{16} << 20U;
  return settings;
}

inline void* pointer(Address address) {
  return reinterpret_cast<void*>(address);
}

// A device block of floats, as programs see it.
struct Floats {
  Floats(Runtime& on, std::size_t count) : runtime(on), size(count) {
    static_cast<void>(runtime.allocate(count * sizeof(float), &address));
  }
  [[nodiscard]] Access read() const {
    return {address, size * sizeof(float), AccessKind::kRead};
  }
  [[nodiscard]] Access write() const {
    return {address, size * sizeof(float), AccessKind::kWrite};
  }
  [[nodiscard]] std::vector<float> fetch() const {
    std::vector<float> values(size);
    static_cast<void>(
        runtime.copy(values.data(), pointer(address), size * sizeof(float)));
    return values;
  }

  Runtime& runtime;
  std::size_t size;
  Address address = 0;
};

// out = value, everywhere.
inline Task set_task(const Floats& out, float value) {
  Task task;
  task.name = "set";
  task.accesses = {out.write()};
  auto* const target =
      reinterpret_cast<float*>(out.runtime.shadow(out.address));
  task.body = [target, value, size = out.size] {
    std::fill_n(target, size, value);
    return Status::kOk;
  };
  return task;
}

// out = in + 1.
inline Task next_task(const Floats& in, const Floats& out) {
  Task task;
  task.name = "next";
  task.accesses = {in.read(), out.write()};
  auto* const target =
      reinterpret_cast<float*>(out.runtime.shadow(out.address));
  const auto* const source =
      reinterpret_cast<const float*>(in.runtime.shadow(in.address));
  task.body = [target, source, size = out.size] {
    for (std::size_t i = 0; i < size; ++i) {
      target[i] = source[i] + 1;
    }
    return Status::kOk;
  };
  return task;
}

}  // namespace ascend_sim
