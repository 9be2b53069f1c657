// What the machine has to say about incorrect programs.
// Finds nothing itself.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/runtime.h"

namespace ascend_sim {

class Reports final {
 public:
  // One report for each kind and key until the next take(): a mistake in a
  // loop is told once.
  void add(std::string kind, const std::string& key, std::string text) {
    if (seen_.insert(kind + '\n' + key).second) {
      reports_.push_back({std::move(kind), std::move(text)});
    }
  }

  [[nodiscard]] std::vector<Report> take() {
    seen_.clear();
    return std::exchange(reports_, {});
  }

 private:
  std::vector<Report> reports_;
  std::unordered_set<std::string> seen_;
};

}  // namespace ascend_sim
