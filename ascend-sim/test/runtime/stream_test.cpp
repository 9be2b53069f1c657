// Streams: order, lag, synchronisation, queries.
// Races and graphs have their own files.
#include <gtest/gtest.h>

#include <cmath>

#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

TEST(stream, synchronize_makes_results_visible) {
  Runtime runtime(small_settings());
  Floats a(runtime, 64);
  Floats b(runtime, 64);
  Stream* const stream = runtime.default_stream();
  ASSERT_EQ(runtime.submit(stream, set_task(a, 1)), Status::kOk);
  ASSERT_EQ(runtime.submit(stream, next_task(a, b)), Status::kOk);
  ASSERT_EQ(runtime.synchronize(stream, std::nullopt), Status::kOk);
  EXPECT_EQ(b.fetch(), std::vector<float>(64, 2.0F));
}

TEST(stream, unsynchronized_host_reads_poison_under_some_seed) {
  int stale = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Runtime runtime(small_settings(seed));
    Floats a(runtime, 4);
    Stream* const stream = runtime.default_stream();
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(runtime.submit(stream, set_task(a, 1)), Status::kOk);
    }
    Floats b(runtime, 4);
    ASSERT_EQ(runtime.submit(stream, next_task(a, b)), Status::kOk);
    stale += std::isnan(b.fetch()[0]) ? 1 : 0;
  }
  EXPECT_GT(stale, 0);
}

TEST(stream, query_polling_ends) {
  Runtime runtime(small_settings());
  Floats a(runtime, 4);
  Stream* const stream = runtime.default_stream();
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(runtime.submit(stream, set_task(a, 1)), Status::kOk);
  }
  bool done = false;
  ASSERT_EQ(runtime.query(stream, &done), Status::kOk);
  EXPECT_FALSE(done);
  while (!done) {
    ASSERT_EQ(runtime.query(stream, &done), Status::kOk);
  }
  EXPECT_EQ(a.fetch(), std::vector<float>(4, 1.0F));
}

}  // namespace
}  // namespace ascend_sim
