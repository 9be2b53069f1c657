// The race detector's ranges: lookup, update, pruning.
// Compares clocks and nothing else.
#include "runtime/races.h"

#include <algorithm>
#include <iterator>

namespace ascend_sim {
namespace {

bool is_over(const Races::Site& site, const Clock& clock) {
  return site.count <= clock.at(site.component);
}

}  // namespace

std::vector<Races::Site> Races::find(const Access& access,
                                     const Clock& host) const {
  std::vector<Site> racing;
  const auto consider = [&racing, &host](const Site& site) {
    const bool is_last = !racing.empty() &&
                         racing.back().component == site.component &&
                         racing.back().count == site.count;
    if (!is_over(site, host) && !is_last) {
      racing.push_back(site);
    }
  };
  const Address end = access.address + access.bytes;
  auto range = ranges_.upper_bound(access.address);
  if (range != ranges_.begin() &&
      std::prev(range)->second.end > access.address) {
    --range;
  }
  for (; range != ranges_.end() && range->first < end; ++range) {
    if (range->second.write) {
      consider(*range->second.write);
    }
    if (access.kind == AccessKind::kWrite) {
      std::ranges::for_each(range->second.reads, consider);
    }
  }
  return racing;
}

std::vector<Races::Site> Races::add(const Site& site, const Clock& before) {
  std::vector<Site> racing = find(site.access, before);
  split(site.access.address);
  split(site.access.address + site.access.bytes);
  if (site.access.kind == AccessKind::kRead) {
    add_read(site, before);
  } else {
    add_write(site);
  }
  return racing;
}

void Races::split(Address address) {
  auto range = ranges_.upper_bound(address);
  if (range == ranges_.begin()) {
    return;
  }
  --range;
  if (range->first < address && address < range->second.end) {
    Range rest = range->second;
    range->second.end = address;
    ranges_.emplace(address, std::move(rest));
  }
}

void Races::add_read(const Site& site, const Clock& before) {
  const Address end = site.access.address + site.access.bytes;
  Address from = site.access.address;
  for (auto range = ranges_.lower_bound(from); from < end; ++range) {
    if (range == ranges_.end() || range->first > from) {
      const Address gap_end =
          range == ranges_.end() ? end : std::min(end, range->first);
      range = ranges_.emplace_hint(range, from, Range{gap_end, {}, {}});
    }
    Range& each = range->second;
    std::erase_if(each.reads, [&before](const Site& read) {
      return is_over(read, before);
    });
    each.reads.push_back(site);
    from = each.end;
  }
}

void Races::add_write(const Site& site) {
  const Address end = site.access.address + site.access.bytes;
  ranges_.erase(ranges_.lower_bound(site.access.address),
                ranges_.lower_bound(end));
  ranges_.emplace(site.access.address, Range{end, site, {}});
}

void Races::forget(Address address, std::size_t bytes) {
  split(address);
  split(address + bytes);
  ranges_.erase(ranges_.lower_bound(address),
                ranges_.lower_bound(address + bytes));
}

void Races::prune(const Clock& host) {
  if (ranges_.size() < prune_at_) {
    return;
  }
  for (auto range = ranges_.begin(); range != ranges_.end();) {
    Range& each = range->second;
    if (each.write && is_over(*each.write, host)) {
      each.write.reset();
    }
    std::erase_if(each.reads,
                  [&host](const Site& site) { return is_over(site, host); });
    range = !each.write && each.reads.empty() ? ranges_.erase(range)
                                              : std::next(range);
  }
  prune_at_ = std::max<std::size_t>(1024, 2 * ranges_.size());
}

}  // namespace ascend_sim
