// The race detector: silent on ordered programs, loud on the others.
// Whether results go wrong is another matter: it needs no wrong result.
#include <gtest/gtest.h>

#include "runtime/races.h"
#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

enum class Waits : bool { kAll, kOneMissing };

// Two streams that hand a block to and fro.
std::vector<Report> run_program(std::uint64_t seed, Waits waits) {
  Runtime runtime(small_settings(seed));
  Stream* const main = make_stream(runtime);
  Stream* const side = make_stream(runtime);
  const Floats a(runtime, 64);
  const Floats b(runtime, 64);
  expect_ok(runtime.submit(main, set_task(a, 1)));
  order(runtime, main, side);
  expect_ok(runtime.submit(side, next_task(a, b)));
  if (waits == Waits::kAll) {
    order(runtime, side, main);
  }
  expect_ok(runtime.submit(main, next_task(b, a)));
  sync(runtime, main);
  if (waits == Waits::kAll) {
    EXPECT_EQ(a.first(), 3.0F) << "seed " << seed;
  }
  sync(runtime, side);
  expect_ok(runtime.free(a.address));
  expect_ok(runtime.free(b.address));
  return runtime.take_reports();
}

TEST(Race, correct_program_is_silent_under_1000_seeds) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const std::vector<Report> reports = run_program(seed, Waits::kAll);
    ASSERT_EQ(reports.size(), 0U) << "seed " << seed << ": " << reports[0].text;
  }
}

TEST(Race, missing_wait_is_reported_under_each_of_1000_seeds) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    // next reads what the other's next writes, and the other way round.
    ASSERT_EQ(kinds(run_program(seed, Waits::kOneMissing)), Names{"race"})
        << "seed " << seed;
  }
}

struct RaceTest : testing::Test {
  void submit(Stream* stream, Task task) {
    expect_ok(runtime.submit(stream, std::move(task)));
  }
  Task touch(const std::string& name, Access access) {
    Task task = empty_task(name);
    task.accesses = {access};
    return task;
  }

  Runtime runtime{small_settings()};
  Stream* main = make_stream(runtime);
  Stream* side = make_stream(runtime);
  Floats a{runtime, 64};
  Floats b{runtime, 64};
};

TEST_F(RaceTest, report_names_both_sides) {
  submit(main, touch("first", a.write()));
  submit(side, touch("second", {a.address + 4, 8, AccessKind::kRead}));
  const std::vector<Report> reports = runtime.take_reports();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].text,
            "second (stream 3, task 1) reads 8 bytes at 0x4 of device 0 while "
            "first (stream 2, task 1) writes 256 bytes at 0 of device 0: no "
            "stream's order, event or synchronisation puts one before the "
            "other");
}

TEST_F(RaceTest, every_kind_of_conflict_counts) {
  submit(main, touch("w1", a.write()));
  submit(side, touch("w2", a.write()));
  submit(main, touch("r3", a.read()));
  EXPECT_EQ(runtime.take_reports().size(), 2U) << "w2 with w1, r3 with w2";
  submit(main, touch("r4", b.read()));
  submit(side, touch("w5", b.write()));
  EXPECT_EQ(runtime.take_reports().size(), 1U) << "w5 with r4";
}

TEST_F(RaceTest, reads_do_not_conflict) {
  submit(main, touch("r1", a.read()));
  submit(side, touch("r2", a.read()));
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(RaceTest, write_after_two_unordered_reads_names_both) {
  Stream* const third = make_stream(runtime);
  submit(main, touch("r1", a.read()));
  submit(side, touch("r2", a.read()));
  submit(third, touch("w", a.write()));
  EXPECT_EQ(runtime.take_reports().size(), 2U);
}

TEST_F(RaceTest, neighbouring_bytes_do_not_conflict) {
  submit(main, touch("left", {a.address, 100, AccessKind::kWrite}));
  submit(side, touch("right", {a.address + 100, 100, AccessKind::kWrite}));
  EXPECT_EQ(runtime.take_reports().size(), 0U);
  submit(side, touch("over", {a.address + 99, 1, AccessKind::kWrite}));
  EXPECT_EQ(runtime.take_reports().size(), 1U);
}

TEST_F(RaceTest, parts_of_a_range_keep_their_own_history) {
  submit(main, touch("all", a.write()));
  order(runtime, main, side);
  submit(side, touch("part", {a.address + 64, 64, AccessKind::kWrite}));
  submit(main, touch("head", {a.address, 64, AccessKind::kRead}));
  submit(main, touch("tail", {a.address + 128, 128, AccessKind::kRead}));
  EXPECT_EQ(runtime.take_reports().size(), 0U);
  submit(main, touch("middle", {a.address + 96, 4, AccessKind::kRead}));
  EXPECT_EQ(runtime.take_reports().size(), 1U);
  Stream* const third = make_stream(runtime);
  submit(third, touch("behind", {a.address + 200, 4, AccessKind::kRead}));
  EXPECT_EQ(runtime.take_reports().size(), 1U) << "behind with all";
  submit(third, touch("before", {a.address + 60, 4, AccessKind::kRead}));
  EXPECT_EQ(runtime.take_reports().size(), 1U) << "before with all";
}

TEST_F(RaceTest, order_is_transitive) {
  Stream* const third = make_stream(runtime);
  submit(main, touch("w", a.write()));
  order(runtime, main, side);
  order(runtime, side, third);
  submit(third, touch("r", a.read()));
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(RaceTest, event_recorded_too_early_orders_nothing) {
  Event* const event = make_event(runtime);
  expect_ok(runtime.record(event, main));
  submit(main, touch("w", a.write()));
  expect_ok(runtime.wait(side, event));
  submit(side, touch("r", a.read()));
  EXPECT_EQ(runtime.take_reports().size(), 1U);
}

TEST_F(RaceTest, host_that_waited_orders_all_that_follows) {
  submit(main, touch("w", a.write()));
  sync(runtime, main);
  submit(side, touch("r", a.read()));
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(RaceTest, query_that_said_no_orders_nothing) {
  for (int i = 0; i < 30; ++i) {
    submit(main, touch("w", a.write()));
  }
  bool done = true;
  expect_ok(runtime.query(main, &done));
  ASSERT_FALSE(done);
  submit(side, touch("r", a.read()));
  EXPECT_EQ(runtime.take_reports().size(), 1U);
}

TEST_F(RaceTest, time_orders_nothing) {
  submit(main, touch("w", a.write()));
  // By the clock, main is over long since; nobody has established it.
  submit(side, empty_task("other"));
  sync(runtime, side);
  for (int i = 0; i < 100; ++i) {
    submit(side, empty_task("other"));
  }
  sync(runtime, side);
  submit(side, touch("r", a.read()));
  EXPECT_EQ(runtime.take_reports().size(), 1U);
}

TEST_F(RaceTest, synchronous_copies_are_the_hosts_accesses) {
  submit(main, touch("w", a.write()));
  static_cast<void>(a.fetch());
  const std::vector<Report> reports = runtime.take_reports();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].text.find("the host's copy device to host reads"), 0U)
      << reports[0].text;
  submit(main, touch("r", b.read()));
  const float zero = 0;
  expect_ok(runtime.copy(pointer(b.address), &zero, 4));
  EXPECT_EQ(runtime.take_reports().size(), 1U) << "a write under a read";
  submit(main, touch("r", b.read()));
  static_cast<void>(b.fetch());
  EXPECT_EQ(runtime.take_reports().size(), 0U) << "a read beside a read";
}

TEST_F(RaceTest, a_pair_is_told_once_until_it_is_taken) {
  for (int i = 0; i < 5; ++i) {
    submit(main, touch("w1", a.write()));
    submit(side, touch("w2", a.write()));
  }
  EXPECT_EQ(runtime.take_reports().size(), 2U) << "w2 with w1, w1 with w2";
  submit(side, touch("w2", a.write()));
  submit(main, touch("w1", a.write()));
  EXPECT_EQ(runtime.take_reports().size(), 1U);
}

TEST_F(RaceTest, stream_in_the_place_of_a_destroyed_one_is_another) {
  submit(main, touch("w1", a.write()));
  expect_ok(runtime.destroy_stream(side, false));
  Stream* const fresh = make_stream(runtime);
  submit(fresh, touch("w2", a.write()));
  EXPECT_EQ(runtime.take_reports().size(), 1U);
}

TEST_F(RaceTest, pinned_memory_is_watched_too) {
  void* host = nullptr;
  expect_ok(runtime.allocate_host(256, &host));
  expect_ok(runtime.copy_async(host, pointer(a.address), 256, main));
  expect_ok(runtime.copy_async(host, pointer(b.address), 256, side));
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"race"});
  expect_ok(runtime.synchronize_device(std::nullopt));
  expect_ok(runtime.free_host(host));
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST(Races, history_stays_small) {
  Races races;
  Clock host;
  auto task = std::make_shared<const Task>();
  std::size_t most = 0;
  for (std::uint64_t i = 1; i <= 100000; ++i) {
    Clock clock = host;
    clock.set(0, i);
    const Access access{(i * 64) % (1U << 24U), 32,
                        i % 3 == 0 ? AccessKind::kWrite : AccessKind::kRead};
    EXPECT_EQ(races.add({0, i, 0, i, task, access}, clock).size(), 0U);
    if (i % 100 == 0) {
      host.set(0, i);
    }
    races.prune(host);
    most = std::max(most, races.ranges());
  }
  EXPECT_LE(most, 1024U);
}

}  // namespace
}  // namespace ascend_sim
