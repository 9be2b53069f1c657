// What happened, for tests and people.
// Writes no file and orders nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/clock.h"
#include "runtime/engine.h"
#include "runtime/task.h"

namespace ascend_sim {

using Notes = std::vector<std::pair<std::string, std::string>>;

// Tasks that ran and calls of the host. Always kept, because tests ask without
// having said so before; a task costs a reference to what was submitted. After
// a million entries the rest is only counted.
class Trace final {
 public:
  static constexpr std::size_t kMost = 1000000;

  explicit Trace(std::size_t most = kMost) : most_(most) {}

  void ran(const Job& job, Status status);
  void noted(Ticks when, std::uint32_t thread, std::string name,
             std::string category, Notes notes);

  // Chrome's trace format: a process for each device with a thread for each
  // stream, and one for the host.
  [[nodiscard]] std::string json(std::int32_t devices) const;
  // NAME@STREAM for each task that ran, in that order.
  [[nodiscard]] std::vector<std::string> schedule() const;

 private:
  struct Ran {
    Ticks start = 0;
    Ticks end = 0;
    std::shared_ptr<const Task> task;
    std::int32_t device = 0;
    std::int32_t stream = 0;
    std::uint64_t sequence = 0;
    std::uint32_t graph = 0;  // 0: none
    std::uint32_t thread = 0;
    Status status = Status::kOk;
  };
  struct Noted {
    Ticks when = 0;
    std::uint32_t thread = 0;
    std::string name;
    std::string category;
    Notes notes;
  };

  [[nodiscard]] bool has_room();
  static std::string json_of(const Ran& ran);
  static std::string json_of(const Noted& noted, std::int32_t devices);

  std::size_t most_;
  std::size_t dropped_ = 0;
  std::vector<Ran> ran_;
  std::vector<Noted> noted_;
};

}  // namespace ascend_sim
