// Sums in the precision they are given, in a fixed order. Rounds nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace ascend_sim {

// As a vector unit adds: 64 lanes, each in the order of the elements, then the
// lanes pairwise.
template <class C, class Term>
[[nodiscard]] C sum_of(std::span<const C> values, Term&& term) {
  constexpr std::size_t kLanes = 64;
  std::array<C, kLanes> lanes{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    lanes[i % kLanes] += term(values[i]);
  }
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

template <class C>
[[nodiscard]] C sum_of(std::span<const C> values) {
  return sum_of(values, [](C value) { return value; });
}

}  // namespace ascend_sim
