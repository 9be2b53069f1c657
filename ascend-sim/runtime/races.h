// Who touched which bytes, and whether something orders them: the race
// detector's memory.
// Words no report; knows addresses, not devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/clock.h"
#include "runtime/task.h"

namespace ascend_sim {

// Two accesses race when their bytes overlap, one of them writes, and nothing
// orders them. What orders: a stream's own order; an event's record and the
// waits for it; a graph's edges, and a replay's place on its stream; what the
// host has waited for, before all that it submits or touches afterwards.
//
// The host is one participant, however many threads it has. Threads hand work
// to each other in ways that this library cannot see (torch_npu's task queue
// is one), so telling them apart would report programs that are correct; races
// between host threads are for the compiler's thread sanitizer. The host needs
// no entries here either: what it touched is over before its next submission.
//
// Accesses come in the order of submission, and nothing orders a later
// submission before an earlier one, so a clock needs to be compared only one
// way. For the same reason a range keeps its last write and, for each
// component, the last read since: whatever follows a write or a later read of
// its own stream also follows what was there before.
class Races final {
 public:
  struct Site {
    std::uint32_t component = 0;  // in clocks
    std::uint64_t count = 0;      // of the component
    std::int32_t stream = 0;
    std::uint64_t sequence = 0;  // on the stream
    std::shared_ptr<const Task> task;
    Access access;
  };

  // The earlier accesses that nothing orders before this one. Remembers it.
  [[nodiscard]] std::vector<Site> add(const Site& site, const Clock& before);
  // The same for an access of the host, which is not remembered.
  [[nodiscard]] std::vector<Site> find(const Access& access,
                                       const Clock& host) const;
  // Drops what happened in a range that was freed.
  void forget(Address address, std::size_t bytes);
  // Drops what the host knows to be over, when enough has gathered.
  void prune(const Clock& host);

  [[nodiscard]] std::size_t ranges() const { return ranges_.size(); }

 private:
  struct Range {
    Address end = 0;
    std::optional<Site> write;
    std::vector<Site> reads;
  };
  using Ranges = std::map<Address, Range>;

  // Makes a range begin at the address if one crosses it.
  void split(Address address);
  void add_read(const Site& site, const Clock& before);
  void add_write(const Site& site);

  Ranges ranges_;
  std::size_t prune_at_ = 1024;
};

}  // namespace ascend_sim
