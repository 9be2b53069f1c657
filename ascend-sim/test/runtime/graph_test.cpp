// Graphs: what a capture records, what replays do, how both end.
// The capture modes have their own file.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

struct GraphTest : testing::Test {
  // Captures what record() submits to main.
  template <typename Record>
  Graph* capture(const Record& record) {
    expect_ok(runtime.begin_capture(main, CaptureMode::kGlobal));
    record();
    Graph* graph = nullptr;
    expect_ok(runtime.end_capture(main, &graph));
    return graph;
  }

  void submit(Stream* stream, Task task) {
    expect_ok(runtime.submit(stream, std::move(task)));
  }

  Runtime runtime{small_settings()};
  Stream* main = make_stream(runtime);
  Stream* side = make_stream(runtime);
  Stream* other = make_stream(runtime);
  Floats a{runtime, 16};
  Floats b{runtime, 16};
};

TEST_F(GraphTest, capture_runs_nothing) {
  const Graph* const graph = capture([this] { submit(main, set_task(a, 1)); });
  ASSERT_NE(graph, nullptr);
  sync(runtime, main);
  EXPECT_EQ(runtime.schedule(), Names{});
}

TEST_F(GraphTest, replay_runs_captured_tasks_each_time) {
  Graph* const graph = capture([this] { submit(main, next_task(a, a)); });
  submit(main, set_task(a, 5));
  for (int i = 0; i < 3; ++i) {
    expect_ok(runtime.replay(graph, main));
  }
  sync(runtime, main);
  EXPECT_EQ(a.first(), 8.0F);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(GraphTest, replay_on_another_stream_is_ordered_there) {
  Graph* const graph = capture([this] { submit(main, next_task(a, b)); });
  submit(other, set_task(a, 1));
  expect_ok(runtime.replay(graph, other));
  submit(other, next_task(b, b));
  sync(runtime, other);
  EXPECT_EQ(b.first(), 3.0F);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(GraphTest, replay_without_order_is_a_race) {
  Graph* const graph = capture([this] { submit(main, next_task(a, b)); });
  submit(other, set_task(a, 1));
  expect_ok(runtime.replay(graph, main));
  sync(runtime, main);
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"race"});
}

TEST_F(GraphTest, events_in_capture_fork_and_join) {
  Graph* const graph = capture([this] {
    submit(main, set_task(a, 1));
    order(runtime, main, side);
    submit(side, next_task(a, b));
    order(runtime, side, main);
    submit(main, next_task(b, a));
  });
  ASSERT_NE(graph, nullptr);
  expect_ok(runtime.replay(graph, main));
  sync(runtime, main);
  EXPECT_EQ(a.first(), 3.0F);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(GraphTest, branches_without_an_edge_race_in_replay) {
  Graph* const graph = capture([this] {
    submit(main, set_task(a, 1));
    order(runtime, main, side);
    submit(side, next_task(a, b));
    submit(main, set_task(b, 7));
    order(runtime, side, main);
  });
  EXPECT_EQ(runtime.take_reports().size(), 0U) << "nothing ran yet";
  expect_ok(runtime.replay(graph, main));
  sync(runtime, main);
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"race"});
}

TEST_F(GraphTest, independent_branches_run_in_several_orders) {
  Graph* const graph = capture([this] {
    order(runtime, main, side);
    submit(main, empty_task("left"));
    submit(side, empty_task("right"));
    order(runtime, side, main);
  });
  for (int i = 0; i < 40; ++i) {
    expect_ok(runtime.replay(graph, main));
  }
  sync(runtime, main);
  const Names ran = runtime.schedule();
  ASSERT_EQ(ran.size(), 80U);
  std::set<std::string> firsts;
  for (std::size_t i = 0; i < ran.size(); i += 2) {
    EXPECT_NE(ran[i], ran[i + 1]);
    firsts.insert(ran[i]);
  }
  EXPECT_EQ(firsts.size(), 2U) << "either branch comes first in some replay";
}

TEST_F(GraphTest, captured_bodies_outlive_their_task) {
  auto owned = std::make_shared<int>(0);
  Graph* const graph = capture([this, owned] {
    Task task = empty_task("count");
    task.body = [owned] {
      ++*owned;
      return Status::kOk;
    };
    submit(main, std::move(task));
  });
  expect_ok(runtime.replay(graph, main));
  expect_ok(runtime.replay(graph, main));
  sync(runtime, main);
  EXPECT_EQ(*owned, 2);
  expect_ok(runtime.destroy_graph(graph));
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_F(GraphTest, eager_state_of_an_event_survives_a_capture) {
  Event* const event = make_event(runtime);
  submit(side, set_task(a, 1));
  expect_ok(runtime.record(event, side));
  capture([&] {
    expect_ok(runtime.record(event, main));
    bool done = false;
    EXPECT_EQ(runtime.query(event, &done), Status::kEventCaptured);
    EXPECT_EQ(runtime.synchronize(event, std::nullopt), Status::kEventCaptured);
  });
  expect_ok(runtime.synchronize(event, std::nullopt));
  EXPECT_EQ(a.first(), 1.0F);
}

TEST_F(GraphTest, waiting_for_work_outside_the_capture_is_refused) {
  Event* const event = make_event(runtime);
  expect_ok(runtime.record(event, side));
  capture([&] {
    EXPECT_EQ(runtime.wait(main, event), Status::kCaptureDependency);
  });
  Event* const unrecorded = make_event(runtime);
  capture([&] { expect_ok(runtime.wait(main, unrecorded)); });
}

TEST_F(GraphTest, synchronisation_in_capture_is_refused) {
  capture([this] {
    bool done = false;
    EXPECT_EQ(runtime.synchronize(main, std::nullopt), Status::kStreamCaptured);
    EXPECT_EQ(runtime.query(main, &done), Status::kStreamCaptured);
    EXPECT_EQ(runtime.synchronize_device(std::nullopt),
              Status::kStreamCaptured);
    EXPECT_EQ(runtime.destroy_stream(main, false), Status::kStreamCaptured);
    EXPECT_NE(runtime.recent_message().find("captures"), std::string::npos);
    expect_ok(runtime.synchronize(side, std::nullopt));
  });
}

TEST_F(GraphTest, unjoined_stream_fails_the_capture) {
  expect_ok(runtime.begin_capture(main, CaptureMode::kGlobal));
  order(runtime, main, side);
  submit(side, set_task(a, 1));
  Graph* graph = nullptr;
  EXPECT_EQ(runtime.end_capture(main, &graph), Status::kStreamUnjoined);
  EXPECT_EQ(graph, nullptr);
  // All is as before: both streams run tasks again.
  submit(side, set_task(a, 2));
  sync(runtime, side);
  EXPECT_EQ(a.first(), 2.0F);
}

TEST_F(GraphTest, work_after_joining_back_fails_the_capture) {
  expect_ok(runtime.begin_capture(main, CaptureMode::kGlobal));
  order(runtime, main, side);
  submit(side, set_task(a, 1));
  order(runtime, side, main);
  submit(side, set_task(a, 2));
  Graph* graph = nullptr;
  EXPECT_EQ(runtime.end_capture(main, &graph), Status::kStreamUnjoined);
}

TEST_F(GraphTest, record_before_the_last_task_does_not_join) {
  expect_ok(runtime.begin_capture(main, CaptureMode::kGlobal));
  order(runtime, main, side);
  Event* const early = make_event(runtime);
  expect_ok(runtime.record(early, side));
  submit(side, set_task(a, 1));
  expect_ok(runtime.wait(main, early));
  Graph* graph = nullptr;
  EXPECT_EQ(runtime.end_capture(main, &graph), Status::kStreamUnjoined);
}

TEST_F(GraphTest, stream_that_joined_for_nothing_must_come_back_too) {
  expect_ok(runtime.begin_capture(main, CaptureMode::kGlobal));
  order(runtime, main, side);
  Graph* graph = nullptr;
  EXPECT_EQ(runtime.end_capture(main, &graph), Status::kStreamUnjoined);
}

TEST_F(GraphTest, streams_may_come_back_through_others) {
  Graph* const graph = capture([this] {
    order(runtime, main, side);
    order(runtime, side, other);
    submit(other, set_task(a, 1));
    order(runtime, other, side);
    submit(side, next_task(a, b));
    order(runtime, side, main);
  });
  ASSERT_NE(graph, nullptr);
  expect_ok(runtime.replay(graph, main));
  sync(runtime, main);
  EXPECT_EQ(b.first(), 2.0F);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(GraphTest, streams_that_only_join_each_other_fail_the_capture) {
  expect_ok(runtime.begin_capture(main, CaptureMode::kGlobal));
  order(runtime, main, side);
  order(runtime, main, other);
  submit(side, set_task(a, 1));
  order(runtime, side, other);
  submit(other, set_task(b, 1));
  order(runtime, other, side);
  Graph* graph = nullptr;
  EXPECT_EQ(runtime.end_capture(main, &graph), Status::kStreamUnjoined);
}

TEST_F(GraphTest, begin_and_end_check_streams_and_threads) {
  EXPECT_EQ(
      runtime.begin_capture(runtime.default_stream(), CaptureMode::kGlobal),
      Status::kUnsupported);
  Graph* graph = nullptr;
  EXPECT_EQ(runtime.end_capture(main, &graph), Status::kStreamNotCaptured);
  expect_ok(runtime.begin_capture(main, CaptureMode::kThreadLocal));
  EXPECT_EQ(runtime.begin_capture(main, CaptureMode::kGlobal),
            Status::kStreamCaptured);
  order(runtime, main, side);
  EXPECT_EQ(runtime.end_capture(side, &graph), Status::kCaptureUnmatched);
  std::thread([&] {
    EXPECT_EQ(runtime.end_capture(main, &graph), Status::kCaptureWrongThread);
  }).join();
  EXPECT_EQ(runtime.end_capture(main, &graph), Status::kStreamNotCaptured);
}

TEST_F(GraphTest, relaxed_capture_may_end_in_another_thread) {
  expect_ok(runtime.begin_capture(main, CaptureMode::kRelaxed));
  submit(main, set_task(a, 1));
  Graph* graph = nullptr;
  std::thread([&] { expect_ok(runtime.end_capture(main, &graph)); }).join();
  EXPECT_NE(graph, nullptr);
}

TEST_F(GraphTest, two_captures_that_meet_are_both_invalid) {
  expect_ok(runtime.begin_capture(main, CaptureMode::kGlobal));
  expect_ok(runtime.begin_capture(other, CaptureMode::kGlobal));
  Event* const event = make_event(runtime);
  expect_ok(runtime.record(event, main));
  EXPECT_EQ(runtime.wait(other, event), Status::kCaptureConflict);
  CaptureState state = CaptureState::kNone;
  Graph* graph = nullptr;
  expect_ok(runtime.capture_info(other, &state, &graph));
  EXPECT_EQ(state, CaptureState::kInvalidated);
  EXPECT_EQ(runtime.submit(main, set_task(a, 1)), Status::kCaptureInvalidated);
  EXPECT_EQ(runtime.end_capture(main, &graph), Status::kCaptureInvalidated);
  EXPECT_EQ(runtime.end_capture(other, &graph), Status::kCaptureInvalidated);
}

TEST_F(GraphTest, default_stream_cannot_join_a_capture) {
  expect_ok(runtime.begin_capture(main, CaptureMode::kGlobal));
  Event* const event = make_event(runtime);
  expect_ok(runtime.record(event, main));
  EXPECT_EQ(runtime.wait(runtime.default_stream(), event),
            Status::kCaptureImplicit);
}

TEST_F(GraphTest, info_and_end_give_the_same_graph) {
  CaptureState state = CaptureState::kActive;
  Graph* seen = nullptr;
  expect_ok(runtime.capture_info(main, &state, &seen));
  EXPECT_EQ(state, CaptureState::kNone);
  EXPECT_EQ(seen, nullptr);
  Graph* const made = capture([&] {
    expect_ok(runtime.capture_info(main, &state, &seen));
    EXPECT_EQ(state, CaptureState::kActive);
    EXPECT_EQ(runtime.replay(seen, other), Status::kModelCaptured);
    EXPECT_EQ(runtime.destroy_graph(seen), Status::kModelCaptured);
  });
  EXPECT_EQ(made, seen);
  EXPECT_EQ(runtime.find_graph(made), made);
}

TEST_F(GraphTest, replay_on_a_capturing_stream_is_refused) {
  Graph* const graph = capture([this] { submit(main, set_task(a, 1)); });
  capture(
      [&] { EXPECT_EQ(runtime.replay(graph, main), Status::kStreamCaptured); });
}

TEST_F(GraphTest, destroyed_graph_is_refused_and_reported) {
  Graph* const graph = capture([this] { submit(main, set_task(a, 1)); });
  expect_ok(runtime.replay(graph, main));
  expect_ok(runtime.destroy_graph(graph));
  EXPECT_EQ(a.first(), 1.0F) << "destruction waits for the replay";
  static_cast<void>(runtime.take_reports());
  EXPECT_EQ(runtime.replay(graph, main), Status::kInvalidHandle);
  EXPECT_EQ(runtime.destroy_graph(graph), Status::kInvalidHandle);
  EXPECT_EQ(kinds(runtime.take_reports()),
            (Names{"use-after-destroy", "use-after-destroy"}));
}

TEST_F(GraphTest, dangling_operand_is_reported_at_replay) {
  Graph* const graph = capture([this] { submit(main, set_task(b, 1)); });
  expect_ok(runtime.replay(graph, main));
  sync(runtime, main);
  expect_ok(runtime.free(b.address));
  EXPECT_EQ(runtime.take_reports().size(), 0U);
  expect_ok(runtime.replay(graph, main));
  EXPECT_EQ(runtime.synchronize(main, std::nullopt),
            Status::kVectorCoreException);
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"use-after-free"});
}

TEST_F(GraphTest, operand_in_a_block_given_out_again_is_reported) {
  Graph* const graph = capture([this] { submit(main, set_task(b, 1)); });
  expect_ok(runtime.free(b.address));
  const Floats again(runtime, b.size);
  ASSERT_EQ(again.address, b.address);
  expect_ok(runtime.replay(graph, main));
  sync(runtime, main);
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"use-after-free"});
  EXPECT_EQ(again.first(), 1.0F) << "as on a device, the write happened";
}

TEST_F(GraphTest, edges_hold_in_every_replay) {
  Graph* const graph = capture([this] {
    submit(main, empty_task("trunk"));
    order(runtime, main, side);
    submit(main, empty_task("left"));
    submit(side, empty_task("right"));
    order(runtime, side, main);
    submit(main, empty_task("join"));
  });
  for (int i = 0; i < 100; ++i) {
    expect_ok(runtime.replay(graph, main));
  }
  sync(runtime, main);
  const Names ran = runtime.schedule();
  ASSERT_EQ(ran.size(), 400U);
  for (std::size_t i = 0; i < ran.size(); i += 4) {
    EXPECT_EQ(ran[i], "trunk@2");
    EXPECT_EQ(ran[i + 3], "join@2");
  }
}

// Of one graph, on two streams that nothing else orders.
TEST_F(GraphTest, replays_of_one_graph_follow_each_other) {
  Graph* const graph = capture([this] {
    submit(main, next_task(b, a));
    order(runtime, main, side);
    submit(side, next_task(a, b));
    order(runtime, side, main);
  });
  submit(main, set_task(b, 0));
  sync(runtime, main);
  for (int i = 0; i < 10; ++i) {
    expect_ok(runtime.replay(graph, main));
    expect_ok(runtime.replay(graph, other));
  }
  expect_ok(runtime.synchronize_device(std::nullopt));
  EXPECT_EQ(b.first(), 40.0F);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

}  // namespace
}  // namespace ascend_sim
