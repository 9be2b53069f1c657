// Copies and fills: what they move, and what they wait for.
// Their races are in race_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

struct CopyTest : testing::Test {
  CopyTest() {
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    void* block = nullptr;
    expect_ok(runtime.allocate_host(bytes, &block));
    pinned = static_cast<float*>(block);
    std::fill_n(pinned, numbers.size(), -1.0F);
  }
  ~CopyTest() override {
    sync(runtime, stream);
    expect_ok(runtime.free_host(pinned));
  }

  // Keeps the stream busy beyond what the host's clock reaches by itself.
  void delay() {
    for (int i = 0; i < 30; ++i) {
      expect_ok(runtime.submit(stream, empty_task("delay")));
    }
  }

  Runtime runtime{small_settings()};
  Stream* stream = make_stream(runtime);
  std::vector<float> numbers = std::vector<float>(64);
  std::size_t bytes = 64 * sizeof(float);
  float* pinned = nullptr;
  Floats a{runtime, 64};
  Floats b{runtime, 64};
};

TEST_F(CopyTest, synchronous_copies_move_all_ways) {
  expect_ok(runtime.copy(pointer(a.address), numbers.data(), bytes));
  expect_ok(runtime.copy(pointer(b.address), pointer(a.address), bytes));
  EXPECT_EQ(b.fetch(), numbers);
  std::vector<float> host(64);
  expect_ok(runtime.copy(host.data(), numbers.data(), bytes));
  EXPECT_EQ(host, numbers);
}

TEST_F(CopyTest, synchronous_copy_overtakes_pending_work) {
  delay();
  expect_ok(runtime.submit(stream, set_task(a, 1)));
  expect_ok(runtime.fill(pointer(a.address), 0, bytes));
  EXPECT_EQ(a.first(), 0.0F);
  sync(runtime, stream);
  EXPECT_EQ(a.first(), 1.0F);
  EXPECT_EQ(kinds(runtime.take_reports()), (Names{"race", "race"}));
}

TEST_F(CopyTest, copies_reach_other_devices) {
  expect_ok(runtime.set_device(1));
  const Floats far(runtime, 64);
  expect_ok(runtime.copy(pointer(a.address), numbers.data(), bytes));
  expect_ok(runtime.copy(pointer(far.address), pointer(a.address), bytes));
  EXPECT_EQ(far.fetch(), numbers);
  expect_ok(runtime.set_device(0));
}

TEST_F(CopyTest, pinned_source_is_read_when_the_copy_runs) {
  std::fill_n(pinned, 64, 1.0F);
  delay();
  expect_ok(runtime.copy_async(pointer(a.address), pinned, bytes, stream));
  std::fill_n(pinned, 64, 2.0F);
  sync(runtime, stream);
  EXPECT_EQ(a.first(), 2.0F);
}

TEST_F(CopyTest, pinned_target_is_written_when_the_copy_runs) {
  expect_ok(runtime.copy(pointer(a.address), numbers.data(), bytes));
  delay();
  expect_ok(runtime.copy_async(pinned, pointer(a.address), bytes, stream));
  EXPECT_EQ(pinned[1], -1.0F);
  sync(runtime, stream);
  EXPECT_EQ(pinned[1], 1.0F);
}

TEST_F(CopyTest, pageable_copy_waits_for_its_stream) {
  delay();
  expect_ok(runtime.submit(stream, set_task(a, 3)));
  std::vector<float> host(64);
  expect_ok(runtime.copy_async(host.data(), pointer(a.address), bytes, stream));
  EXPECT_EQ(host.front(), 3.0F);
  EXPECT_EQ(runtime.take_reports().size(), 0U);
}

TEST_F(CopyTest, pageable_copy_cannot_be_captured) {
  expect_ok(runtime.begin_capture(stream, CaptureMode::kRelaxed));
  EXPECT_EQ(
      runtime.copy_async(pointer(a.address), numbers.data(), bytes, stream),
      Status::kInvalidParam);
  expect_ok(runtime.copy_async(pointer(a.address), pinned, bytes, stream));
  Graph* graph = nullptr;
  expect_ok(runtime.end_capture(stream, &graph));
  std::ranges::copy(numbers, pinned);
  expect_ok(runtime.replay(graph, stream));
  sync(runtime, stream);
  EXPECT_EQ(a.fetch(), numbers);
}

TEST_F(CopyTest, fills_set_bytes) {
  expect_ok(runtime.fill_async(pointer(a.address), 0, bytes, stream));
  sync(runtime, stream);
  EXPECT_EQ(a.fetch(), std::vector<float>(64, 0.0F));
  expect_ok(runtime.fill(pointer(a.address), 0x40, bytes));
  EXPECT_EQ(a.first(), 3.00392151F);  // 0x40404040
}

TEST_F(CopyTest, nothing_to_copy_is_no_work) {
  expect_ok(runtime.copy(nullptr, nullptr, 0));
  expect_ok(runtime.copy_async(nullptr, nullptr, 0, stream));
  EXPECT_EQ(runtime.copy(nullptr, numbers.data(), 4), Status::kInvalidParam);
  EXPECT_EQ(runtime.copy_async(pinned, nullptr, 4, stream),
            Status::kInvalidParam);
  EXPECT_EQ(runtime.fill(nullptr, 0, 4), Status::kInvalidParam);
  EXPECT_EQ(runtime.fill_async(nullptr, 0, 4, stream), Status::kInvalidParam);
}

TEST_F(CopyTest, copy_beyond_a_block_is_refused_and_reported) {
  std::vector<float> host(1024);
  EXPECT_EQ(runtime.copy(host.data(), pointer(a.address), bytes + 1),
            Status::kInvalidParam);
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"out-of-bounds"});
}

}  // namespace
}  // namespace ascend_sim
