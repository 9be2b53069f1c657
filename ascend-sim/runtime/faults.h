// Failures on demand: which occurrence of which point fails.
// Whoever has a point asks here and fails in its own way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ascend_sim {

// Made from ASCEND_SIM_FAULT: POINT:N for the Nth occurrence from 1, POINT:*
// for every one, several with commas between. Points:
//   malloc       an allocation finds no memory
//   launch:NAME  the task fails when it runs, and its error stays
//   hang:NAME    the task never ends; nothing later on its stream starts
//   register     the registration of a kernel's binary fails
//   replay       a graph cannot be executed
//   capture_end  a capture cannot be ended
//
// A wait without a timeout for a stream that hangs ends all the same, after a
// second, as if it had timed out: a test must not hang for ever.
class Faults final {
 public:
  // Ends the process with the list of points for a rule that names none.
  explicit Faults(std::string_view rules);

  // Counts an occurrence and says whether it must fail.
  [[nodiscard]] bool hit(std::string_view point);
  [[nodiscard]] bool any() const { return !rules_.empty(); }

 private:
  struct Rule {
    std::string point;
    std::uint64_t failing = 0;  // 0: every occurrence
    std::uint64_t seen = 0;
  };

  static Rule parse(std::string_view rule);

  std::vector<Rule> rules_;
};

}  // namespace ascend_sim
