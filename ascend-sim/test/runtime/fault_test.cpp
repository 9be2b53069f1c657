// Failures on demand, and waits for streams that hang.
// The points register and those of the other rooms are asked for there.
#include <gtest/gtest.h>

#include "runtime/faults.h"
#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

constexpr std::chrono::milliseconds kSoon{20};

TEST(Fault, counts_occurrences_of_its_point) {
  Faults faults("malloc:2,launch:aclnnAdd:1,launch:aclnnAdd:3,replay:*");
  const auto hits = [&faults](const char* point, int times) {
    std::string pattern;
    for (int i = 0; i < times; ++i) {
      pattern += faults.hit(point) ? 'x' : '.';
    }
    return pattern;
  };
  EXPECT_EQ(hits("malloc", 4), ".x..");
  EXPECT_EQ(hits("launch:aclnnAdd", 4), "x.x.");
  EXPECT_EQ(hits("launch:aclnnMul", 2), "..");
  EXPECT_EQ(hits("replay", 3), "xxx");
  EXPECT_FALSE(Faults("").any());
}

TEST(FaultDeathTest, rules_that_name_no_point_end_the_process) {
  for (const char* const rules :
       {"nonsense:1", "malloc", "malloc:0", "malloc:x", "malloc:1x",
        "malloc:1,", "launch:1", "malloc:2,,replay:1", ":1"}) {
    EXPECT_EXIT(Faults{rules}, testing::ExitedWithCode(2),
                "malloc, register, replay, capture_end, launch:NAME, hang:NAME")
        << rules;
  }
}

TEST(Fault, nth_allocation_finds_no_memory) {
  Runtime runtime(small_settings(1, "malloc:2"));
  Address block = 0;
  expect_ok(runtime.allocate(8, &block));
  EXPECT_EQ(runtime.allocate(8, &block), Status::kOutOfMemory);
  EXPECT_NE(runtime.recent_message().find("ASCEND_SIM_FAULT"),
            std::string::npos);
  expect_ok(runtime.allocate(8, &block));
}

TEST(Fault, named_task_fails_when_it_runs) {
  Runtime runtime(small_settings(1, "launch:set:2"));
  Stream* const stream = make_stream(runtime);
  const Floats a(runtime, 16);
  expect_ok(runtime.submit(stream, set_task(a, 1)));
  expect_ok(runtime.submit(stream, set_task(a, 2)));
  expect_ok(runtime.submit(stream, set_task(a, 3)));
  EXPECT_EQ(runtime.synchronize(stream, std::nullopt),
            Status::kVectorCoreException);
  EXPECT_EQ(a.first(), 1.0F) << "the failed and the later ones left it alone";
  static_cast<void>(runtime.take_reports());
}

TEST(Fault, captured_task_fails_in_the_asked_for_replay) {
  Runtime runtime(small_settings(1, "launch:set:2"));
  Stream* const stream = make_stream(runtime);
  const Floats a(runtime, 16);
  expect_ok(runtime.begin_capture(stream, CaptureMode::kGlobal));
  expect_ok(runtime.submit(stream, set_task(a, 1)));
  Graph* graph = nullptr;
  expect_ok(runtime.end_capture(stream, &graph));
  expect_ok(runtime.replay(graph, stream));
  sync(runtime, stream);
  expect_ok(runtime.replay(graph, stream));
  EXPECT_EQ(runtime.synchronize(stream, std::nullopt),
            Status::kVectorCoreException);
}

TEST(Fault, replay_and_end_of_capture_fail) {
  Runtime runtime(small_settings(1, "capture_end:1,replay:1"));
  Stream* const stream = make_stream(runtime);
  Graph* graph = nullptr;
  expect_ok(runtime.begin_capture(stream, CaptureMode::kGlobal));
  EXPECT_EQ(runtime.end_capture(stream, &graph), Status::kInternal);
  EXPECT_EQ(graph, nullptr);
  expect_ok(runtime.begin_capture(stream, CaptureMode::kGlobal));
  expect_ok(runtime.end_capture(stream, &graph));
  EXPECT_EQ(runtime.replay(graph, stream), Status::kModelExecute);
  expect_ok(runtime.replay(graph, stream));
}

TEST(Fault, other_rooms_ask_for_theirs) {
  Runtime runtime(small_settings(1, "register:2"));
  EXPECT_FALSE(runtime.fault("register"));
  EXPECT_TRUE(runtime.fault("register"));
  EXPECT_FALSE(runtime.fault("register"));
}

struct HangTest : testing::Test {
  HangTest() {
    expect_ok(runtime.submit(stream, set_task(a, 1)));
    expect_ok(runtime.submit(stream, empty_task("stuck")));
    expect_ok(runtime.submit(stream, set_task(a, 2)));
  }

  Runtime runtime{small_settings(1, "hang:stuck:1")};
  Stream* stream = make_stream(runtime);
  Stream* healthy = make_stream(runtime);
  Floats a{runtime, 16};
};

TEST_F(HangTest, wait_with_a_timeout_times_out) {
  EXPECT_EQ(runtime.synchronize(stream, kSoon), Status::kSyncTimeout);
  EXPECT_EQ(runtime.synchronize_device(kSoon), Status::kSyncTimeout);
  bool done = true;
  expect_ok(runtime.query(stream, &done));
  EXPECT_FALSE(done);
  EXPECT_EQ(runtime.schedule(), Names{"set@2"}) << "what came before has run";
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(HangTest, wait_without_a_timeout_ends_with_a_report) {
  EXPECT_EQ(runtime.synchronize(stream, std::nullopt), Status::kSyncTimeout);
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"hang"});
}

TEST_F(HangTest, other_streams_go_on) {
  expect_ok(runtime.submit(healthy, empty_task("fine")));
  sync(runtime, healthy);
  EXPECT_EQ(runtime.schedule().back(), "fine@3");
}

TEST_F(HangTest, who_waits_for_the_stream_hangs_too) {
  Event* const event = make_event(runtime);
  expect_ok(runtime.record(event, stream));
  EXPECT_EQ(runtime.synchronize(event, kSoon), Status::kEventSyncTimeout);
  expect_ok(runtime.wait(healthy, event));
  expect_ok(runtime.submit(healthy, empty_task("waits")));
  EXPECT_EQ(runtime.synchronize(healthy, kSoon), Status::kSyncTimeout);
}

TEST_F(HangTest, forced_destruction_frees_the_device) {
  expect_ok(runtime.destroy_stream(stream, true));
  expect_ok(runtime.synchronize_device(kSoon));
}

TEST(Fault, graph_that_hangs_cannot_be_destroyed) {
  Runtime runtime(small_settings(1, "hang:stuck:1"));
  Stream* const stream = make_stream(runtime);
  expect_ok(runtime.begin_capture(stream, CaptureMode::kGlobal));
  expect_ok(runtime.submit(stream, empty_task("stuck")));
  Graph* graph = nullptr;
  expect_ok(runtime.end_capture(stream, &graph));
  expect_ok(runtime.replay(graph, stream));
  EXPECT_EQ(runtime.destroy_graph(graph), Status::kModelRunning);
  EXPECT_EQ(runtime.find_graph(graph), graph);
  static_cast<void>(runtime.take_reports());
}

}  // namespace
}  // namespace ascend_sim
