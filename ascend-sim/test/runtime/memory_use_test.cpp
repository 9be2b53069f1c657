// Long runs: 2,000 captures and replays, many streams and events, without
// growth.
// Their results are checked elsewhere.
#include <gtest/gtest.h>
#include <malloc.h>

#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCountsHeap = false;  // the sanitizers bring their own heap
#else
constexpr bool kCountsHeap = true;
#endif

struct Cycle {
  explicit Cycle(Runtime& on) : runtime(on) {}

  void run() {
    Stream* const main = make_stream(runtime);
    Stream* const side = make_stream(runtime);
    expect_ok(runtime.begin_capture(main, CaptureMode::kGlobal));
    const Floats scratch(runtime, 1000);
    expect_ok(runtime.submit(main, set_task(a, 1)));
    order(runtime, main, side);
    expect_ok(runtime.submit(side, next_task(a, scratch)));
    order(runtime, side, main);
    Graph* graph = nullptr;
    expect_ok(runtime.end_capture(main, &graph));
    expect_ok(runtime.replay(graph, main));
    expect_ok(runtime.replay(graph, main));
    sync(runtime, main);
    expect_ok(runtime.destroy_graph(graph));
    expect_ok(runtime.free(scratch.address));
    expect_ok(runtime.destroy_stream(side, false));
    expect_ok(runtime.destroy_stream(main, false));
  }

  Runtime& runtime;
  Floats a{runtime, 1000};
};

TEST(MemoryUse, two_thousand_captures_and_replays_leave_nothing) {
  Runtime runtime(small_settings());
  Cycle cycle(runtime);
  for (int i = 0; i < 200; ++i) {
    cycle.run();
  }
  const std::size_t device_free = runtime.memory_use().free_bytes;
  const std::size_t heap = mallinfo2().uordblks;
  for (int i = 0; i < 2000; ++i) {
    cycle.run();
  }
  EXPECT_EQ(runtime.memory_use().free_bytes, device_free);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
  if (kCountsHeap) {
    // The trace grows by what it says about each call, and nothing else may.
    const std::size_t trace = runtime.trace().size();
    EXPECT_LT(mallinfo2().uordblks - heap, 3 * trace);
  }
}

}  // namespace
}  // namespace ascend_sim
