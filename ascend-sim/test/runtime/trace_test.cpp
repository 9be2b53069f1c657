// Traces and schedules: what tests and people read.
// The file that is written at exit is in process_test.cpp.
#include "runtime/trace.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "runtime/json.h"
#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

TEST(Json, strings_are_escaped) {
  EXPECT_EQ(json_string("plain"), "\"plain\"");
  EXPECT_EQ(json_string("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\u000a\\u0001\"");
  EXPECT_EQ(json_string("µ"), "\"µ\"");
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Trace, shows_what_ran_where_with_which_operands) {
  Runtime runtime(small_settings());
  expect_ok(runtime.set_device(1));
  Stream* const stream = make_stream(runtime);
  const Floats a(runtime, 16);
  Task task = set_task(a, 1);
  task.notes = {{"tiling key", "16"}, {"quote", "\""}};
  // It may be due at once, and so begin before the host asks.
  std::latch asked(1);
  task.body = [&asked] {
    asked.wait();
    return Status::kOk;
  };
  expect_ok(runtime.submit(stream, std::move(task)));
  EXPECT_FALSE(has(runtime.trace(), "\"ph\":\"X\"")) << "it is not over";
  asked.count_down();
  sync(runtime, stream);
  const std::string trace = runtime.trace();
  EXPECT_TRUE(has(trace,
                  "{\"ph\":\"X\",\"cat\":\"task\",\"name\":\"set\","
                  "\"pid\":1,\"tid\":2,\"ts\":"));
  EXPECT_TRUE(has(trace, "+64\"],\"tiling key\":\"16\",\"quote\":\"\\\"\"}}"));
  EXPECT_TRUE(has(trace, "\"sequence\":1,\"accesses\":[\"write 0x"));
  EXPECT_TRUE(has(trace, "\"name\":\"stream 2\""));
  EXPECT_TRUE(has(trace, "\"name\":\"device 1\""));
}

TEST(Trace, names_the_thread_that_submitted_a_task) {
  Runtime runtime(small_settings());
  Stream* const stream = make_stream(runtime);
  const Floats a(runtime, 16);
  expect_ok(runtime.submit(stream, set_task(a, 1)));
  std::thread([&] {
    expect_ok(runtime.submit(stream, set_task(a, 2)));
    runtime.note("here", "test");
  }).join();
  runtime.note("there", "test");
  sync(runtime, stream);
  const std::string trace = runtime.trace();
  for (const std::string name : {"here", "there"}) {
    const std::string note = "\"" + name + R"(","cat":"test","pid":)" +
                             std::to_string(small_settings().devices) +
                             ",\"tid\":";
    const std::size_t number = trace.find(note) + note.size();
    const std::string thread =
        trace.substr(number, trace.find(',', number) - number);
    EXPECT_TRUE(has(trace, "\"args\":{\"thread\":" + thread + ","))
        << name << " in " << trace;
  }
}

TEST(Trace, shows_the_hosts_calls) {
  Runtime runtime(small_settings());
  Stream* const stream = make_stream(runtime);
  const Floats a(runtime, 16);
  order(runtime, stream, stream);
  static_cast<void>(a.fetch());
  sync(runtime, stream);
  expect_ok(runtime.synchronize_device(std::nullopt));
  runtime.note("rtKernelLaunch", "launch", {{"kernel", "norm"}});
  expect_ok(runtime.free(a.address));
  const std::string trace = runtime.trace();
  for (const char* const name :
       {R"("name":"allocate","cat":"memory")",
        R"("name":"record","cat":"event")", R"("name":"wait","cat":"event")",
        R"("name":"copy device to host","cat":"copy")",
        R"("name":"synchronize_stream","cat":"wait")",
        R"("name":"synchronize_device","cat":"wait")",
        R"("name":"rtKernelLaunch","cat":"launch")",
        R"("args":{"kernel":"norm","device":"0"})",
        R"("name":"free","cat":"memory")"}) {
    EXPECT_TRUE(has(trace, name)) << name << " in " << trace;
  }
}

TEST(Trace, names_the_graph_of_a_replayed_task) {
  Runtime runtime(small_settings());
  Stream* const main = make_stream(runtime);
  Stream* const side = make_stream(runtime);
  Stream* const other = make_stream(runtime);
  expect_ok(runtime.begin_capture(main, CaptureMode::kGlobal));
  expect_ok(runtime.submit(main, empty_task("trunk")));
  order(runtime, main, side);
  expect_ok(runtime.submit(side, empty_task("branch")));
  order(runtime, side, main);
  Graph* graph = nullptr;
  expect_ok(runtime.end_capture(main, &graph));
  expect_ok(runtime.replay(graph, other));
  sync(runtime, other);
  // The capture's first lane shows as the stream of the replay.
  EXPECT_EQ(runtime.schedule(), (Names{"trunk@4", "branch@3"}));
  EXPECT_TRUE(has(runtime.trace(), "\"accesses\":[],\"graph\":1}"));
}

TEST(Trace, failed_task_carries_its_status) {
  Runtime runtime(small_settings(1, "launch:bad:1"));
  Stream* const stream = make_stream(runtime);
  expect_ok(runtime.submit(stream, empty_task("bad")));
  EXPECT_EQ(runtime.synchronize(stream, std::nullopt),
            Status::kVectorCoreException);
  EXPECT_TRUE(has(runtime.trace(), "\"status\":507035}"));
}

TEST(Trace, forgets_what_exceeds_its_room_and_says_so) {
  Trace trace(3);
  Job job;
  job.task = std::make_shared<const Task>(empty_task("task"));
  for (int i = 0; i < 2; ++i) {
    trace.ran(job, Status::kOk);
    trace.noted(0, 0, "note", "category", {});
  }
  EXPECT_EQ(trace.schedule().size(), 2U);
  EXPECT_TRUE(has(trace.json(1), "\"otherData\":{\"dropped\":1}"));
}

}  // namespace
}  // namespace ascend_sim
