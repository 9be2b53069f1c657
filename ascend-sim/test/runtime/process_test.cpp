// Beginnings and ends of processes: settings, exits, forks.
// Each runs in a process of its own, because Runtime::get() is made once.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

// A machine that is small, so that each process is made quickly.
Runtime& small_process() {
  setenv("ASCEND_SIM_MEMORY", "16", 1);
  return Runtime::get();
}

void submit_many(Runtime& runtime, const Floats& block) {
  for (int i = 0; i < 1000; ++i) {
    expect_ok(runtime.submit(runtime.default_stream(), set_task(block, 1)));
  }
}

TEST(ProcessDeathTest, exit_with_pending_work_is_clean) {
  EXPECT_EXIT(
      {
        Runtime& runtime = small_process();
        submit_many(runtime, Floats(runtime, 4096));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ProcessDeathTest, exit_with_graphs_and_an_open_capture_is_clean) {
  EXPECT_EXIT(
      {
        Runtime& runtime = small_process();
        Stream* const stream = make_stream(runtime);
        const Floats block(runtime, 4096);
        expect_ok(runtime.begin_capture(stream, CaptureMode::kGlobal));
        expect_ok(runtime.submit(stream, set_task(block, 1)));
        Graph* graph = nullptr;
        expect_ok(runtime.end_capture(stream, &graph));
        expect_ok(runtime.replay(graph, stream));
        expect_ok(runtime.begin_capture(stream, CaptureMode::kGlobal));
        expect_ok(runtime.submit(stream, set_task(block, 2)));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ProcessDeathTest, exit_with_a_stream_that_hangs_is_clean) {
  EXPECT_EXIT(
      {
        setenv("ASCEND_SIM_FAULT", "hang:stuck:1", 1);
        Runtime& runtime = small_process();
        expect_ok(
            runtime.submit(runtime.default_stream(), empty_task("stuck")));
        submit_many(runtime, Floats(runtime, 16));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

// Libraries' destructors call after the simulator's own end.
TEST(ProcessDeathTest, calls_after_the_end_return) {
  EXPECT_EXIT(
      {
        std::atexit([] {
          Runtime& runtime = Runtime::get();
          bool done = false;
          expect_ok(runtime.synchronize_device(std::nullopt));
          expect_ok(runtime.query(runtime.default_stream(), &done));
          submit_many(runtime, Floats(runtime, 16));
          expect_ok(runtime.synchronize_device(std::nullopt));
        });
        Runtime& runtime = small_process();
        submit_many(runtime, Floats(runtime, 4096));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

void race(Runtime& runtime) {
  const Floats block(runtime, 16);
  expect_ok(runtime.submit(make_stream(runtime), set_task(block, 1)));
  expect_ok(runtime.submit(make_stream(runtime), set_task(block, 1)));
}

TEST(ProcessDeathTest, reports_that_nobody_took_fail_the_process) {
  EXPECT_EXIT(
      {
        race(small_process());
        std::exit(0);
      },
      testing::ExitedWithCode(66),
      "^ascend-sim: race: set \\(stream 3, task 1\\) writes .*set \\(stream 2");
}

TEST(ProcessDeathTest, reports_that_were_taken_do_not) {
  EXPECT_EXIT(
      {
        Runtime& runtime = small_process();
        race(runtime);
        std::exit(runtime.take_reports().size() == 1 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "^$");
}

TEST(ProcessDeathTest, output_is_complete_when_reports_fail_the_process) {
  const std::string path = testing::TempDir() + "ascend_sim_output.txt";
  EXPECT_EXIT(
      {
        std::FILE* const file = std::fopen(path.c_str(), "w");
        std::fputs("buffered", file);
        race(small_process());
        std::exit(0);
      },
      testing::ExitedWithCode(66), "race");
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "buffered");
  std::remove(path.c_str());
}

TEST(ProcessDeathTest, trace_is_written_at_exit) {
  const std::string path = testing::TempDir() + "ascend_sim_trace.json";
  EXPECT_EXIT(
      {
        setenv("ASCEND_SIM_TRACE", path.c_str(), 1);
        Runtime& runtime = small_process();
        expect_ok(runtime.submit(runtime.default_stream(), empty_task("seen")));
        expect_ok(runtime.synchronize_device(std::nullopt));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find("\"name\":\"seen\""), std::string::npos);
  std::remove(path.c_str());
}

TEST(ProcessDeathTest, trace_that_cannot_be_written_is_named) {
  EXPECT_EXIT(
      {
        setenv("ASCEND_SIM_TRACE", "/no/such/folder/trace.json", 1);
        small_process();
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "ASCEND_SIM_TRACE names a file that cannot be written");
}

TEST(ProcessDeathTest, settings_come_from_the_environment) {
  EXPECT_EXIT(
      {
        setenv("ASCEND_SIM_SEED", "7", 1);
        setenv("ASCEND_SIM_DEVICES", "3", 1);
        setenv("ASCEND_SIM_SOC", "Ascend910B1", 1);
        setenv("ASCEND_SIM_MEMORY", "64", 1);
        const Settings& settings = Runtime::get().settings();
        const bool right = settings.seed == 7 && settings.devices == 3 &&
                           settings.soc == "Ascend910B1" &&
                           settings.memory_bytes == std::size_t{64} << 20U &&
                           Runtime::get().set_device(2) == Status::kOk;
        std::exit(right ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ProcessDeathTest, settings_without_sense_end_the_process) {
  const testing::ExitedWithCode refused(2);
  for (const char* const name :
       {"ASCEND_SIM_SEED", "ASCEND_SIM_DEVICES", "ASCEND_SIM_MEMORY"}) {
    for (const char* const value : {"", "-1", "two", "1x"}) {
      EXPECT_EXIT(
          {
            setenv(name, value, 1);
            static_cast<void>(Settings::from_environment());
          },
          refused, std::string(name) + " must be a whole number");
    }
  }
  EXPECT_EXIT(
      {
        setenv("ASCEND_SIM_DEVICES", "0", 1);
        static_cast<void>(Settings::from_environment());
      },
      refused, "from 1 to 16, got \"0\"");
}

TEST(Process, forked_child_is_refused_and_does_not_hang) {
  Runtime runtime(small_settings());
  const Floats block(runtime, 16);
  submit_many(runtime, block);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Address address = 0;
    const bool refused =
        runtime.submit(runtime.default_stream(), set_task(block, 1)) ==
            Status::kInternal &&
        runtime.synchronize_device(std::nullopt) == Status::kInternal &&
        runtime.allocate(8, &address) == Status::kInternal &&
        runtime.last_async_error() == Status::kInternal &&
        runtime.find_stream(&address) == nullptr &&
        runtime.recent_message().find("forked") != std::string::npos;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_ok(runtime.synchronize_device(std::nullopt));
}

}  // namespace
}  // namespace ascend_sim
