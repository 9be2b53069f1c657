// Threads of every kind run each task once; shares cover each row once; the
// cost model; what is left after fork().
#include "xllm_kernel/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "simd/core/spread.h"
#include "support/threads.h"

namespace xllm_kernel::test {
namespace {

using simd::spread_rows;
using simd::threads_worth;

struct Counts {
  explicit Counts(std::size_t size) : of(size) {}
  std::vector<std::atomic<int>> of;
};

void count(void* context, std::int64_t index) noexcept {
  ++static_cast<Counts*>(context)->of[static_cast<std::size_t>(index)];
}

void expect_once(const Counts& counts) {
  for (std::size_t n = 0; n < counts.of.size(); ++n) {
    ASSERT_EQ(counts.of[n], 1) << n;
  }
}

TEST(Threads, test_run_every_kind_each_index_once) {
  for (const Threads& threads : every_kind_of_threads()) {
    for (const std::int64_t tasks : {0, 1, 2, 7, 300}) {
      Counts counts(static_cast<std::size_t>(tasks));
      threads.run(tasks, &count, &counts);
      expect_once(counts);
    }
  }
}

TEST(Threads, test_count_at_least_one) {
  EXPECT_EQ(Threads().count(), 1);
  EXPECT_EQ(Threads::host(0, &run_backwards, nullptr).count(), 1);
  EXPECT_EQ(Threads::host(-3, &run_backwards, nullptr).count(), 1);
  EXPECT_EQ(Threads::own(5).count(), 5);
  EXPECT_EQ(Threads::own().count(), available_threads());
  EXPECT_GE(available_threads(), 1);
}

TEST(Threads, test_host_pool_lent_and_not_asked_for_one) {
  std::atomic<int> calls = 0;
  Counts counts(4);
  Threads::host(1, &run_backwards, &calls).run(2, &count, &counts);
  EXPECT_EQ(calls, 0);
  Counts others(4);
  Threads::host(4, &run_backwards, &calls).run(4, &count, &others);
  EXPECT_EQ(calls, 1);
  expect_once(others);
}

// Two workers and the caller are needed at once, or the last would wait for
// ever.
TEST(Threads, test_own_pool_tasks_at_the_same_time) {
  std::atomic<int> arrived{0};
  Threads::own(3).run(
      3,
      [](void* context, std::int64_t) noexcept {
        auto* of = static_cast<std::atomic<int>*>(context);
        ++*of;
        while (*of < 3) std::this_thread::yield();
      },
      &arrived);
  EXPECT_EQ(arrived, 3);
}

TEST(Threads, test_own_pool_asleep_wakes_up) {
  for (int n = 0; n < 3; ++n) {
    Counts counts(64);
    Threads::own(2).run(64, &count, &counts);
    expect_once(counts);
    // Longer than workers look for work.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(Threads, test_own_pool_from_many_threads_and_from_a_task) {
  std::vector<std::thread> callers;
  callers.reserve(6);
  for (int n = 0; n < 6; ++n) {
    callers.emplace_back([] {
      for (int round = 0; round < 200; ++round) {
        Counts counts(16);
        Threads::own(3).run(
            16,
            [](void* context, std::int64_t index) noexcept {
              Counts inner(3);
              Threads::own(3).run(3, &count, &inner);
              expect_once(inner);
              count(context, index);
            },
            &counts);
        expect_once(counts);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Threads, test_own_pool_in_child_of_fork_each_index_once) {
  Counts before(64);
  Threads::own(3).run(64, &count, &before);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A child that waits for workers that it does not have ends by this.
    alarm(20);
    Counts counts(64);
    Threads::own(3).run(64, &count, &counts);
    for (const auto& times : counts.of) {
      if (times != 1) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Spread, test_each_row_once_whatever_rows_and_threads) {
  constexpr std::int64_t kRowBytes = simd::kBytesPerThread;
  for (const Threads& threads : every_kind_of_threads()) {
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 8, 31, 64, 257, 1000}) {
      Counts counts(static_cast<std::size_t>(rows));
      spread_rows(threads, rows, kRowBytes,
                  [&](std::int64_t begin, std::int64_t end) noexcept {
                    ASSERT_LT(begin, end);
                    for (; begin < end; ++begin) count(&counts, begin);
                  });
      expect_once(counts);
    }
  }
}

// One task does all where no other ever runs.
TEST(Spread, test_shares_of_others_taken_over) {
  simd::Shares shares(1000, 4);
  Counts counts(1000);
  shares.work(2, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin) count(&counts, begin);
  });
  expect_once(counts);
}

TEST(Spread, test_small_work_stays_on_one_thread) {
  constexpr std::int64_t kBytes = simd::kBytesPerThread;
  EXPECT_EQ(threads_worth(1, kBytes * 100, 8), 1);
  EXPECT_EQ(threads_worth(127, kBytes / 64, 8), 1);
  EXPECT_EQ(threads_worth(128, kBytes / 64, 8), 2);
  EXPECT_EQ(threads_worth(192, kBytes / 64, 8), 3);
  EXPECT_EQ(threads_worth(4096, kBytes / 64, 8), 8);
  EXPECT_EQ(threads_worth(5, kBytes * 3, 8), 5);
  EXPECT_EQ(threads_worth(4096, kBytes / 64, 1), 1);
  EXPECT_EQ(threads_worth(std::int64_t{1} << 60, 2, 8), 8);
}

}  // namespace
}  // namespace xllm_kernel::test
