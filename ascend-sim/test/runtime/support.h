// Small machines and programs for the runtime's tests.
// Expects little itself: that a program's own steps succeed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace ascend_sim {

inline Settings small_settings(std::uint64_t seed = 1,
                               const std::string& faults = "") {
  Settings settings;
  settings.seed = seed;
  settings.memory_bytes = std::size_t{16} << 20U;
  settings.faults = faults;
  return settings;
}

inline void* pointer(Address address) {
  return reinterpret_cast<void*>(address);
}

inline void expect_ok(Status status) { EXPECT_EQ(status, Status::kOk); }

inline Stream* make_stream(Runtime& runtime) {
  Stream* stream = nullptr;
  expect_ok(runtime.create_stream(&stream));
  return stream;
}

inline Event* make_event(Runtime& runtime) {
  Event* event = nullptr;
  expect_ok(runtime.create_event(&event));
  return event;
}

inline void sync(Runtime& runtime, Stream* stream) {
  expect_ok(runtime.synchronize(stream, std::nullopt));
}

// second goes on after all that first has now.
inline void order(Runtime& runtime, Stream* first, Stream* second) {
  Event* const event = make_event(runtime);
  expect_ok(runtime.record(event, first));
  expect_ok(runtime.wait(second, event));
  expect_ok(runtime.destroy_event(event));
}

// A device block of floats.
struct Floats {
  Floats(Runtime& on, std::size_t count) : runtime(on), size(count) {
    expect_ok(runtime.allocate(count * sizeof(float), &address));
  }
  [[nodiscard]] std::size_t bytes() const { return size * sizeof(float); }
  [[nodiscard]] Access read() const {
    return {address, bytes(), AccessKind::kRead};
  }
  [[nodiscard]] Access write() const {
    return {address, bytes(), AccessKind::kWrite};
  }
  [[nodiscard]] float* data() const {
    return reinterpret_cast<float*>(runtime.shadow(address));
  }
  // By a copy that is ordered after nothing.
  [[nodiscard]] std::vector<float> fetch() const {
    std::vector<float> values(size);
    expect_ok(runtime.copy(values.data(), pointer(address), bytes()));
    return values;
  }
  [[nodiscard]] float first() const { return fetch().front(); }

  Runtime& runtime;
  std::size_t size;
  Address address = 0;
};

// out = value, everywhere.
inline Task set_task(const Floats& out, float value) {
  Task task;
  task.name = "set";
  task.accesses = {out.write()};
  task.body = [target = out.data(), value, size = out.size] {
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
  task.body = [source = in.data(), target = out.data(), size = out.size] {
    std::transform(source, source + size, target,
                   [](float value) { return value + 1; });
    return Status::kOk;
  };
  return task;
}

// Touches nothing.
inline Task empty_task(const std::string& name) {
  Task task;
  task.name = name;
  return task;
}

inline std::vector<std::string> kinds(const std::vector<Report>& reports) {
  std::vector<std::string> names;
  names.reserve(reports.size());
  for (const Report& report : reports) {
    names.push_back(report.kind);
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace ascend_sim
