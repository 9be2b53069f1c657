// Events: what waits see, queries, times.
// Events within captures are in graph_test.cpp.
#include <gtest/gtest.h>

#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

struct EventTest : testing::Test {
  void delay(Stream* stream) {
    for (int i = 0; i < 30; ++i) {
      expect_ok(runtime.submit(stream, empty_task("delay")));
    }
  }

  Runtime runtime{small_settings()};
  Stream* main = make_stream(runtime);
  Stream* side = make_stream(runtime);
  Event* event = make_event(runtime);
  Floats a{runtime, 16};
  Floats b{runtime, 16};
};

TEST_F(EventTest, wait_holds_back_the_other_stream) {
  delay(main);
  expect_ok(runtime.submit(main, set_task(a, 1)));
  expect_ok(runtime.record(event, main));
  expect_ok(runtime.wait(side, event));
  expect_ok(runtime.submit(side, next_task(a, b)));
  sync(runtime, side);
  EXPECT_EQ(b.first(), 2.0F);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(EventTest, wait_takes_the_record_of_its_time) {
  expect_ok(runtime.record(event, main));
  expect_ok(runtime.wait(side, event));
  delay(main);
  expect_ok(runtime.submit(main, set_task(a, 1)));
  expect_ok(runtime.record(event, main));
  expect_ok(runtime.submit(side, empty_task("early")));
  sync(runtime, side);
  const Names ran = runtime.schedule();
  EXPECT_EQ(std::ranges::count(ran, "early@3"), 1);
  EXPECT_EQ(std::ranges::count(ran, "set@2"), 0);
  sync(runtime, main);
  EXPECT_EQ(runtime.schedule().back(), "set@2");
}

TEST_F(EventTest, event_without_a_record_holds_nobody) {
  expect_ok(runtime.wait(side, event));
  bool done = false;
  expect_ok(runtime.query(event, &done));
  EXPECT_TRUE(done);
  expect_ok(runtime.synchronize(event, std::nullopt));
}

TEST_F(EventTest, query_turns_true_once_its_work_is_over) {
  delay(main);
  expect_ok(runtime.submit(main, set_task(a, 1)));
  expect_ok(runtime.record(event, main));
  bool done = true;
  expect_ok(runtime.query(event, &done));
  EXPECT_FALSE(done);
  while (!done) {
    expect_ok(runtime.query(event, &done));
  }
  EXPECT_EQ(a.first(), 1.0F);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(EventTest, synchronize_waits_for_the_record_only) {
  delay(main);
  expect_ok(runtime.submit(main, set_task(a, 1)));
  expect_ok(runtime.record(event, main));
  delay(main);
  expect_ok(runtime.submit(main, set_task(a, 2)));
  expect_ok(runtime.synchronize(event, std::nullopt));
  EXPECT_EQ(runtime.schedule().back(), "set@2");
  bool done = true;
  expect_ok(runtime.query(main, &done));
  EXPECT_FALSE(done);
}

TEST_F(EventTest, reset_forgets_the_record) {
  delay(main);
  expect_ok(runtime.record(event, main));
  expect_ok(runtime.reset(event, main));
  bool done = false;
  expect_ok(runtime.query(event, &done));
  EXPECT_TRUE(done);
}

TEST_F(EventTest, elapsed_needs_two_reached_records_in_order) {
  Event* const later = make_event(runtime);
  float ms = -1;
  EXPECT_EQ(runtime.elapsed(event, later, &ms), Status::kEventTimestampInvalid);
  expect_ok(runtime.record(event, main));
  delay(main);
  expect_ok(runtime.record(later, main));
  EXPECT_EQ(runtime.elapsed(event, later, &ms), Status::kEventTimestampInvalid);
  expect_ok(runtime.synchronize(later, std::nullopt));
  expect_ok(runtime.elapsed(event, later, &ms));
  EXPECT_GT(ms, 0.0F);
  EXPECT_EQ(runtime.elapsed(later, event, &ms),
            Status::kEventTimestampReversal);
  expect_ok(runtime.elapsed(event, event, &ms));
  EXPECT_EQ(ms, 0.0F);
}

TEST_F(EventTest, records_without_work_between_differ) {
  Event* const later = make_event(runtime);
  delay(main);
  expect_ok(runtime.record(event, main));
  expect_ok(runtime.record(later, main));
  sync(runtime, main);
  float ms = 0;
  expect_ok(runtime.elapsed(event, later, &ms));
  EXPECT_GT(ms, 0.0F);
}

TEST_F(EventTest, handles_that_are_not_alive_are_refused) {
  Event* const gone = make_event(runtime);
  EXPECT_EQ(runtime.find_event(gone), gone);
  expect_ok(runtime.destroy_event(gone));
  EXPECT_EQ(runtime.find_event(gone), nullptr);
  bool done = false;
  EXPECT_EQ(runtime.destroy_event(gone), Status::kInvalidHandle);
  EXPECT_EQ(runtime.record(gone, main), Status::kInvalidHandle);
  EXPECT_EQ(runtime.wait(main, gone), Status::kInvalidHandle);
  EXPECT_EQ(runtime.query(gone, &done), Status::kInvalidHandle);
  EXPECT_EQ(runtime.record(event, nullptr), Status::kInvalidHandle);
  EXPECT_EQ(runtime.create_event(nullptr), Status::kInvalidParam);
}

TEST_F(EventTest, destroyed_event_still_orders_who_waited) {
  delay(main);
  expect_ok(runtime.submit(main, set_task(a, 1)));
  order(runtime, main, side);  // destroys its event
  expect_ok(runtime.submit(side, next_task(a, b)));
  sync(runtime, side);
  EXPECT_EQ(b.first(), 2.0F);
}

TEST_F(EventTest, events_order_streams_of_two_devices) {
  expect_ok(runtime.set_device(1));
  Stream* const far = make_stream(runtime);
  EXPECT_EQ(runtime.record(event, main), Status::kStreamContext);
  expect_ok(runtime.set_device(0));
  delay(main);
  expect_ok(runtime.submit(main, set_task(a, 1)));
  expect_ok(runtime.record(event, main));
  expect_ok(runtime.set_device(1));
  expect_ok(runtime.wait(far, event));
  expect_ok(runtime.submit(far, next_task(a, b)));
  sync(runtime, far);
  EXPECT_EQ(b.first(), 2.0F);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

}  // namespace
}  // namespace ascend_sim
