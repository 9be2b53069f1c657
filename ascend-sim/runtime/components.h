// Places in vector clocks, lent to streams and to graphs' lanes.
// Knows neither.
#pragma once

#include <cstdint>
#include <vector>

namespace ascend_sim {

struct Component {
  std::uint32_t index = 0;
  std::uint64_t count = 0;  // of the latest task
};

// A place that comes back is lent again and goes on counting where it was, so
// that clocks do not grow with every stream and graph that ever was, and what
// a clock knows of the former owner stays true.
class Components final {
 public:
  [[nodiscard]] Component take() {
    if (free_.empty()) {
      return {made_++, 0};
    }
    const Component latest = free_.back();
    free_.pop_back();
    return latest;
  }

  void give_back(const Component& component) { free_.push_back(component); }

 private:
  std::uint32_t made_ = 0;
  std::vector<Component> free_;
};

}  // namespace ascend_sim
