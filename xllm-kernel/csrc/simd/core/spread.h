// Spreads rows over threads, where that pays. Knows neither operators nor
// whose threads they are.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "simd/core/float_controls.h"
#include "xllm_kernel/threads.h"

namespace xllm_kernel::simd {

// Bytes read and written that repay waking one more thread. Waking and waiting
// cost 1 to 2 us on threads that still spin; a core moves this much through its
// arithmetic in 8 us or more. Half of it would gain 16 rows of 6144 in bf16 13
// to 23 % on a second thread in a tight loop, and lose as much again as the
// call takes where threads have gone to sleep, 2 ms after the last call.
inline constexpr std::int64_t kBytesPerThread = std::int64_t{1} << 18;

// Threads that the work repays, at most `count` and at least one, each with a
// row of its own.
[[nodiscard]] constexpr std::int64_t threads_worth(
    std::int64_t rows, std::int64_t row_bytes, std::int64_t count) noexcept {
  // rows * row_bytes cannot overflow: it is the size of checked views, each
  // under 2^62 bytes, of which an operator reads and writes few.
  const std::int64_t rows_per_thread =
      std::max<std::int64_t>(kBytesPerThread / row_bytes, 1);
  return std::clamp<std::int64_t>(rows / rows_per_thread, 1, count);
}

// One share of the rows for each thread, taken in pieces. Whoever is done with
// his own share takes pieces of others', so that a thread that was switched off
// holds up no more than the piece it is at.
class Shares final {
 public:
  static constexpr std::int64_t kMax = 256;

  Shares(std::int64_t rows, std::int64_t count) noexcept
      : rows_(rows), count_(count) {
    // Multiples of four: kernels take narrow rows in groups.
    share_ = ((rows + count - 1) / count + 3) / 4 * 4;
    piece_ = std::max<std::int64_t>(share_ / kPieces / 4 * 4, 1);
    for (std::int64_t n = 0; n < count; ++n) {
      next_[static_cast<std::size_t>(n)].store(begin(n),
                                               std::memory_order_relaxed);
    }
  }

  // Calls body(begin, end) for pieces until none is left, those of share
  // `mine` first.
  template <class Body>
  void work(std::int64_t mine, const Body& body) noexcept {
    for (std::int64_t k = 0; k < count_; ++k) {
      const std::int64_t n = (mine + k) % count_;
      const std::int64_t last = begin(n + 1);
      auto& next = next_[static_cast<std::size_t>(n)];
      while (true) {
        const std::int64_t first =
            next.fetch_add(piece_, std::memory_order_relaxed);
        if (first >= last) break;
        body(first, std::min(first + piece_, last));
      }
    }
  }

 private:
  static constexpr std::int64_t kPieces = 8;

  [[nodiscard]] std::int64_t begin(std::int64_t n) const noexcept {
    return std::min(share_ * n, rows_);
  }

  std::int64_t rows_;
  std::int64_t count_;
  std::int64_t share_ = 1;
  std::int64_t piece_ = 1;
  std::array<std::atomic<std::int64_t>, kMax> next_;
};

// Calls body(begin, end), which must not throw, for ranges that make up
// [0, rows), in the caller's floating-point environment wherever they run.
// `row_bytes` counts what a row reads and writes.
template <class Body>
void spread_rows(const Threads& threads, std::int64_t rows,
                 std::int64_t row_bytes, const Body& body) noexcept {
  const std::int64_t count = threads_worth(
      rows, row_bytes, std::min<std::int64_t>(threads.count(), Shares::kMax));
  if (count == 1) {
    body(0, rows);
    return;
  }
  struct Context {
    Shares shares;
    const Body& body;
    FloatControls::Bits controls;
  } context{Shares(rows, count), body, FloatControls::take()};
  threads.run(
      count,
      [](void* opaque, std::int64_t index) noexcept {
        auto* of = static_cast<Context*>(opaque);
        const FloatControls as_the_caller(of->controls);
        of->shares.work(index, of->body);
      },
      &context);
}

}  // namespace xllm_kernel::simd
