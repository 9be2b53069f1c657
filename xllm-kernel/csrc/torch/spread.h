// Spreads rows over torch's own threads, by one rule for every caller. Needs
// torch's stable headers only; knows no operator.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "torch/csrc/stable/ops.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::bridge {

// Elements that repay waking a thread.
inline constexpr std::int64_t kGrain = 1 << 15;

// Calls `body(RowRange)`, which returns a Status, for ranges that make up
// [0, rows); returns kOk, or a status that some range gave. `width` is positive
// and counts the elements of a row. Work that is too little for two threads is
// one call on this one.
template <class Body>
[[nodiscard]] Status spread_rows(std::int64_t rows, std::int64_t width,
                                 const Body& body) {
  const std::int64_t grain = std::max<std::int64_t>(kGrain / width, 1);
  if (rows <= grain) return body(RowRange{.begin = 0, .end = rows});
  std::atomic<Status> failure{Status::kOk};
  torch::stable::parallel_for(
      0, rows, grain, [&](std::int64_t begin, std::int64_t end) {
        const Status status = body(RowRange{.begin = begin, .end = end});
        if (status != Status::kOk) failure = status;
      });
  return failure;
}

}  // namespace xllm_kernel::bridge
