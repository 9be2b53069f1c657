// Virtual time, and vector clocks: what has happened before what.
// Stores no work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ascend_sim {

// The unit of virtual time.
using Ticks = std::uint64_t;
// The end of a task that hangs.
inline constexpr Ticks kNever = std::numeric_limits<Ticks>::max();

// For each component (a stream, a lane of a graph) the number of its latest
// task that is known to be over.
class Clock final {
 public:
  [[nodiscard]] std::uint64_t at(std::uint32_t component) const {
    return component < counts_.size() ? counts_[component] : 0;
  }

  void set(std::uint32_t component, std::uint64_t count) {
    if (component >= counts_.size()) {
      counts_.resize(component + std::size_t{1});
    }
    counts_[component] = count;
  }

  void join(const Clock& other) {
    if (counts_.size() < other.counts_.size()) {
      counts_.resize(other.counts_.size());
    }
    for (std::size_t i = 0; i < other.counts_.size(); ++i) {
      counts_[i] = std::max(counts_[i], other.counts_[i]);
    }
  }

 private:
  std::vector<std::uint64_t> counts_;
};

}  // namespace ascend_sim
