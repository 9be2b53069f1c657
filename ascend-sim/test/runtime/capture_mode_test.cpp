// Capture modes: which thread may block while a capture is in progress.
// Blocking calls on the capturing stream itself are in graph_test.cpp.
#include <gtest/gtest.h>

#include <thread>

#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

struct CaptureModeTest : testing::Test {
  // What a synchronous fill says now, in this thread.
  Status fill() { return runtime.fill(pointer(a.address), 0, a.bytes()); }

  Status fill_elsewhere(CaptureMode mode) {
    Status status = Status::kOk;
    std::thread([&] {
      expect_ok(runtime.exchange_capture_mode(&mode));
      status = fill();
    }).join();
    return status;
  }

  void begin(CaptureMode mode) {
    expect_ok(runtime.begin_capture(stream, mode));
  }

  ~CaptureModeTest() override {
    Graph* graph = nullptr;
    expect_ok(runtime.end_capture(stream, &graph));
    EXPECT_EQ(fill(), Status::kOk) << "all is allowed after the capture";
  }

  Runtime runtime{small_settings()};
  Stream* stream = make_stream(runtime);
  Stream* side = make_stream(runtime);
  Floats a{runtime, 16};
};

constexpr CaptureMode kGlobal = CaptureMode::kGlobal;
constexpr CaptureMode kThreadLocal = CaptureMode::kThreadLocal;
constexpr CaptureMode kRelaxed = CaptureMode::kRelaxed;

TEST_F(CaptureModeTest, global_forbids_blocking_in_every_thread) {
  begin(kGlobal);
  EXPECT_EQ(fill(), Status::kCaptureModeForbids);
  EXPECT_EQ(fill_elsewhere(kGlobal), Status::kCaptureModeForbids);
  EXPECT_EQ(fill_elsewhere(kThreadLocal), Status::kOk);
  EXPECT_EQ(fill_elsewhere(kRelaxed), Status::kOk);
}

TEST_F(CaptureModeTest, thread_local_forbids_blocking_in_its_thread) {
  begin(kThreadLocal);
  EXPECT_EQ(fill(), Status::kCaptureModeForbids);
  EXPECT_EQ(fill_elsewhere(kGlobal), Status::kOk);
}

TEST_F(CaptureModeTest, relaxed_forbids_nothing) {
  begin(kRelaxed);
  EXPECT_EQ(fill(), Status::kOk);
  EXPECT_EQ(fill_elsewhere(kGlobal), Status::kOk);
}

TEST_F(CaptureModeTest, thread_may_relax_itself_and_come_back) {
  begin(kGlobal);
  CaptureMode mode = kRelaxed;
  expect_ok(runtime.exchange_capture_mode(&mode));
  EXPECT_EQ(mode, kGlobal);
  EXPECT_EQ(fill(), Status::kOk);
  expect_ok(runtime.exchange_capture_mode(&mode));
  EXPECT_EQ(mode, kRelaxed);
  EXPECT_EQ(fill(), Status::kCaptureModeForbids);
  mode = kThreadLocal;
  expect_ok(runtime.exchange_capture_mode(&mode));
  EXPECT_EQ(fill(), Status::kCaptureModeForbids) << "the capture is its own";
}

TEST_F(CaptureModeTest, global_capture_leaves_other_devices) {
  begin(kGlobal);
  std::thread([this] {
    expect_ok(runtime.set_device(1));
    EXPECT_EQ(fill(), Status::kOk);
  }).join();
}

TEST_F(CaptureModeTest, copies_that_would_block_are_forbidden) {
  begin(kGlobal);
  float value = 0;
  void* const device = pointer(a.address);
  EXPECT_EQ(runtime.copy(&value, device, 4), Status::kCaptureModeForbids);
  EXPECT_EQ(runtime.copy(device, &value, 4), Status::kCaptureModeForbids);
  EXPECT_EQ(runtime.copy_async(&value, device, 4, side),
            Status::kCaptureBlocksAsync);
}

TEST_F(CaptureModeTest, memory_may_come_and_go_in_a_capture) {
  begin(kGlobal);
  Address block = 0;
  expect_ok(runtime.allocate(1000, &block));
  expect_ok(runtime.free(block));
}

}  // namespace
}  // namespace ascend_sim
