// Reads and counts the failures that were asked for.
// Makes nothing fail.
#include "runtime/faults.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace ascend_sim {
namespace {

constexpr std::array<std::string_view, 4> kPoints = {"malloc", "register",
                                                     "replay", "capture_end"};
constexpr std::array<std::string_view, 2> kNamedPoints = {"launch:", "hang:"};

bool is_known(std::string_view point) {
  return std::ranges::find(kPoints, point) != kPoints.end() ||
         std::ranges::any_of(kNamedPoints, [point](std::string_view named) {
           return point.starts_with(named) && point.size() > named.size();
         });
}

[[noreturn]] void refuse(std::string_view rule) {
  std::fprintf(stderr,
               "ascend-sim: ASCEND_SIM_FAULT must list POINT:N or POINT:*, "
               "with N from 1 and POINT one of malloc, register, replay, "
               "capture_end, launch:NAME, hang:NAME; got \"%.*s\"\n",
               static_cast<int>(rule.size()), rule.data());
  std::exit(2);
}

}  // namespace

Faults::Faults(std::string_view rules) {
  bool more = !rules.empty();
  while (more) {
    const std::size_t comma = rules.find(',');
    rules_.push_back(parse(rules.substr(0, comma)));
    more = comma != std::string_view::npos;
    rules.remove_prefix(more ? comma + 1 : rules.size());
  }
}

Faults::Rule Faults::parse(std::string_view rule) {
  const std::size_t colon = rule.rfind(':');
  if (colon == std::string_view::npos || !is_known(rule.substr(0, colon))) {
    refuse(rule);
  }
  Rule parsed;
  parsed.point = rule.substr(0, colon);
  const std::string count(rule.substr(colon + 1));
  if (count == "*") {
    return parsed;
  }
  const char* const end = count.c_str() + count.size();
  const auto [stop, error] =
      std::from_chars(count.c_str(), end, parsed.failing);
  if (error != std::errc{} || stop != end || parsed.failing == 0) {
    refuse(rule);
  }
  return parsed;
}

bool Faults::hit(std::string_view point) {
  bool fails = false;
  for (Rule& rule : rules_) {
    if (rule.point == point) {
      ++rule.seen;
      fails = fails || rule.failing == 0 || rule.failing == rule.seen;
    }
  }
  return fails;
}

}  // namespace ascend_sim
