// Streams: order, lag, synchronisation, queries, destruction.
// Races, events and graphs have their own files.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>
#include <thread>

#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

struct StreamTest : testing::Test {
  void submit(Stream* stream, Task task) {
    expect_ok(runtime.submit(stream, std::move(task)));
  }

  Runtime runtime{small_settings()};
  Stream* main = make_stream(runtime);
  Floats a{runtime, 16};
  Floats b{runtime, 16};
};

TEST_F(StreamTest, tasks_of_a_stream_run_in_order) {
  submit(main, set_task(a, 1));
  for (int i = 0; i < 20; ++i) {
    submit(main, next_task(a, a));
  }
  sync(runtime, main);
  EXPECT_EQ(a.first(), 21.0F);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(StreamTest, host_that_does_not_wait_reads_what_was_there) {
  for (int i = 0; i < 30; ++i) {
    submit(main, empty_task("delay"));
  }
  submit(main, set_task(a, 1));
  EXPECT_TRUE(std::isnan(a.first()));
  sync(runtime, main);
  EXPECT_EQ(a.first(), 1.0F);
  static_cast<void>(runtime.take_reports());
}

TEST_F(StreamTest, host_and_device_overlap) {
  std::atomic<bool> open{false};
  Task task = empty_task("gate");
  task.body = [&open] {
    while (!open) {
      std::this_thread::yield();
    }
    return Status::kOk;
  };
  submit(main, std::move(task));
  for (int i = 0; i < 10; ++i) {
    submit(main, set_task(a, 1));  // returns although the gate is shut
  }
  EXPECT_EQ(runtime.synchronize(main, std::chrono::milliseconds(20)),
            Status::kSyncTimeout);
  open = true;
  sync(runtime, main);
}

TEST_F(StreamTest, query_turns_true_once_all_is_over) {
  for (int i = 0; i < 8; ++i) {
    submit(main, set_task(a, 1));
  }
  bool done = true;
  expect_ok(runtime.query(main, &done));
  EXPECT_FALSE(done);
  while (!done) {
    expect_ok(runtime.query(main, &done));
  }
  EXPECT_EQ(a.first(), 1.0F);
}

TEST_F(StreamTest, idle_stream_is_done) {
  bool done = false;
  expect_ok(runtime.query(main, &done));
  EXPECT_TRUE(done);
  sync(runtime, main);
}

TEST_F(StreamTest, device_synchronisation_waits_for_every_stream) {
  Stream* const side = make_stream(runtime);
  submit(main, set_task(a, 1));
  submit(side, set_task(b, 2));
  expect_ok(runtime.synchronize_device(std::nullopt));
  EXPECT_EQ(a.first(), 1.0F);
  EXPECT_EQ(b.first(), 2.0F);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(StreamTest, device_synchronisation_leaves_other_devices) {
  submit(main, empty_task("long"));
  for (int i = 0; i < 30; ++i) {
    submit(main, empty_task("delay"));
  }
  expect_ok(runtime.set_device(1));
  expect_ok(runtime.synchronize_device(std::nullopt));
  bool done = true;
  expect_ok(runtime.query(main, &done));
  EXPECT_FALSE(done);
}

TEST_F(StreamTest, null_handle_means_the_devices_default_stream) {
  const Stream* const first = runtime.find_stream(nullptr);
  EXPECT_EQ(first, runtime.default_stream());
  expect_ok(runtime.set_device(1));
  EXPECT_NE(runtime.find_stream(nullptr), first);
  EXPECT_EQ(runtime.find_stream(main), main);
  EXPECT_EQ(runtime.find_stream(&runtime), nullptr);
}

TEST_F(StreamTest, stream_of_another_device_is_refused) {
  expect_ok(runtime.set_device(1));
  EXPECT_EQ(runtime.device_of(main), 0);
  EXPECT_EQ(runtime.submit(main, set_task(a, 1)), Status::kStreamContext);
  EXPECT_EQ(runtime.fill_async(pointer(a.address), 0, 4, main),
            Status::kStreamContext);
  sync(runtime, main);  // a wait is allowed from everywhere
  expect_ok(runtime.set_device(0));
  submit(main, set_task(a, 1));
}

TEST_F(StreamTest, destruction_waits_for_pending_work) {
  submit(main, set_task(a, 1));
  expect_ok(runtime.destroy_stream(main, false));
  EXPECT_EQ(a.first(), 1.0F);
  EXPECT_EQ(runtime.find_stream(main), nullptr);
  EXPECT_EQ(runtime.destroy_stream(main, false), Status::kInvalidHandle);
  EXPECT_EQ(runtime.submit(main, set_task(a, 1)), Status::kInvalidHandle);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(StreamTest, forced_destruction_drops_pending_work) {
  for (int i = 0; i < 30; ++i) {
    submit(main, empty_task("delay"));
  }
  submit(main, set_task(a, 1));
  expect_ok(runtime.destroy_stream(main, true));
  expect_ok(runtime.synchronize_device(std::nullopt));
  expect_ok(runtime.free(a.address));
  for (const std::string& name : runtime.schedule()) {
    EXPECT_NE(name, "set@2");
  }
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(StreamTest, default_stream_cannot_be_destroyed) {
  EXPECT_EQ(runtime.destroy_stream(runtime.default_stream(), false),
            Status::kInvalidHandle);
}

TEST_F(StreamTest, messages_belong_to_the_thread) {
  EXPECT_EQ(runtime.fail(Status::kInternal, "mine"), Status::kInternal);
  std::thread([this] { EXPECT_EQ(runtime.recent_message(), ""); }).join();
  EXPECT_EQ(runtime.recent_message(), "mine");
  static_cast<void>(runtime.fail(Status::kInternal, std::string(2000, 'x')));
  EXPECT_EQ(runtime.recent_message(), std::string(511, 'x'));
}

Names schedule_of(std::uint64_t seed) {
  Runtime runtime(small_settings(seed));
  Stream* const main = make_stream(runtime);
  Stream* const side = make_stream(runtime);
  for (int i = 0; i < 10; ++i) {
    expect_ok(runtime.submit(main, empty_task("m" + std::to_string(i))));
    expect_ok(runtime.submit(side, empty_task("s" + std::to_string(i))));
    if (i == 4) {
      order(runtime, main, side);
    }
  }
  bool done = false;
  expect_ok(runtime.query(main, &done));
  expect_ok(runtime.synchronize_device(std::nullopt));
  return runtime.schedule();
}

TEST(Schedule, same_seed_gives_the_same_order) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(schedule_of(seed), schedule_of(seed)) << "seed " << seed;
  }
}

TEST(Schedule, seeds_give_many_orders) {
  std::set<Names> orders;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    orders.insert(schedule_of(seed));
  }
  EXPECT_GT(orders.size(), 40U);
}

TEST(Schedule, every_order_keeps_streams_and_events) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Names ran = schedule_of(seed);
    ASSERT_EQ(ran.size(), 20U);
    const auto place = [&ran](const std::string& name) {
      return std::ranges::find(ran, name) - ran.begin();
    };
    for (int i = 0; i < 9; ++i) {
      const std::string now = std::to_string(i);
      const std::string next = std::to_string(i + 1);
      EXPECT_LT(place("m" + now + "@2"), place("m" + next + "@2"));
      EXPECT_LT(place("s" + now + "@3"), place("s" + next + "@3"));
    }
    EXPECT_LT(place("m4@2"), place("s5@3"));
  }
}

}  // namespace
}  // namespace ascend_sim
