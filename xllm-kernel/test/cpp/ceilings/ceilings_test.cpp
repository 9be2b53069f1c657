// The ceilings' passes on every level of this machine: what they move and count
// is exact, since a pass that left something out would be a false ceiling. No
// test looks at a time.
#include "ceilings/ceilings.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ceilings/passes.h"
#include "ceilings/places.h"
#include "simd/core/levels.h"
#include "support/guarded.h"
#include "support/kernels.h"

namespace xllm_kernel::test {
namespace {

using ceilings::Passes;

void fill(const Guarded& memory, unsigned seed) {
  std::mt19937 generator(seed);
  for (std::size_t i = 0; i < memory.bytes(); ++i) {
    memory.data()[i] = static_cast<std::byte>(generator());
  }
}

std::vector<std::byte> bytes_of(const Guarded& memory) {
  return {memory.data(), memory.data() + memory.bytes()};
}

// More than two turns of the longest loop (4 * 64 bytes), with every tail.
constexpr std::int64_t kMostBytes = 600;

class EveryLevel : public testing::TestWithParam<simd::LevelInfo> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam().level)) {
      GTEST_SKIP() << "this machine lacks " << GetParam().name;
    }
  }
  [[nodiscard]] static const Passes& passes() {
    return ceilings::passes_of(GetParam().name);
  }
};

INSTANTIATE_TEST_SUITE_P(Ceilings, EveryLevel,
                         testing::ValuesIn(simd::levels().begin(),
                                           simd::levels().end()),
                         [](const auto& of) { return of.param.name; });

// Both ends of both buffers lie against a guard page in turn, which moves the
// alignment of source and destination through all values.
TEST_P(EveryLevel, test_copies_every_length_and_alignment_exact) {
  for (const auto copy : {passes().copy, passes().copy_streaming}) {
    for (std::int64_t bytes = 0; bytes <= kMostBytes; ++bytes) {
      for (const Flush to_flush : {Flush::kFront, Flush::kBack}) {
        const Guarded from(static_cast<std::size_t>(bytes), Flush::kBack);
        const Guarded to(static_cast<std::size_t>(bytes), to_flush);
        fill(from, static_cast<unsigned>(bytes));
        const std::vector<std::byte> before = bytes_of(from);
        copy(to.data(), from.data(), bytes);
        ASSERT_EQ(bytes_of(to), before) << bytes << " bytes";
        ASSERT_EQ(bytes_of(from), before) << bytes << " bytes";
        ASSERT_TRUE(to.intact() && from.intact()) << bytes << " bytes";
      }
    }
  }
}

TEST_P(EveryLevel, test_read_every_byte_counts) {
  for (std::int64_t bytes = 0; bytes <= kMostBytes; ++bytes) {
    const Guarded from(static_cast<std::size_t>(bytes), Flush::kBack);
    fill(from, static_cast<unsigned>(bytes));
    std::uint64_t expected = 0;
    for (std::int64_t i = 0; i < bytes; ++i) {
      expected ^= static_cast<std::uint64_t>(from.data()[i]) << (i % 8 * 8);
    }
    ASSERT_EQ(passes().read(from.data(), bytes), expected) << bytes << " bytes";
  }
}

TEST_P(EveryLevel, test_update_every_length_and_alignment_exact) {
  for (std::int64_t bytes = 0; bytes <= kMostBytes; ++bytes) {
    for (const Flush flush : {Flush::kFront, Flush::kBack}) {
      const Guarded at(static_cast<std::size_t>(bytes), flush);
      fill(at, static_cast<unsigned>(bytes));
      std::vector<std::byte> expected = bytes_of(at);
      for (std::byte& byte : expected) byte ^= std::byte{0x5a};
      passes().update(at.data(), bytes);
      ASSERT_EQ(bytes_of(at), expected) << bytes << " bytes";
      ASSERT_TRUE(at.intact()) << bytes << " bytes";
    }
  }
}

// Each turn adds 1/4 to each chain, so sums tell how many chains there are, and
// the operations of a turn how wide they must be.
TEST_P(EveryLevel, test_fma_operations_are_those_of_its_chains) {
  const auto chains =
      static_cast<std::int64_t>(passes().fma(400) - passes().fma(396));
  ASSERT_GT(chains, 0);
  const float start = static_cast<float>(chains * (chains - 1)) / 2.0F;
  EXPECT_EQ(passes().fma(400), start + 100.0F * static_cast<float>(chains));
  const std::int64_t lanes = passes().operations_a_turn / (2 * chains);
  EXPECT_EQ(2 * chains * lanes, passes().operations_a_turn);
  const std::string name = GetParam().name;
  EXPECT_EQ(lanes, name.starts_with("avx512") ? 16
                   : name == "avx2"           ? 8
                   : name == "neon"           ? 4
                                              : 1);
  EXPECT_EQ(XLLM_CEILING_GRAIN % passes().operations_a_turn, 0);
}

// Each turn adds two products of 1/4 to each chain.
TEST_P(EveryLevel, test_dot_operations_are_those_of_its_chains) {
  const ceilings::DotPass pass = ceilings::dot_pass_of(GetParam().name);
  ASSERT_EQ(pass.dot != nullptr, std::string(GetParam().name) == "avx512bf16");
  if (pass.dot == nullptr) return;
  const auto chains = static_cast<std::int64_t>(pass.dot(400) - pass.dot(398));
  ASSERT_GE(chains, 6);  // the instruction's latency
  const float start = static_cast<float>(chains * (chains - 1)) / 2.0F;
  EXPECT_EQ(pass.dot(400), start + 200.0F * static_cast<float>(chains));
  EXPECT_EQ(pass.operations_a_turn, chains * 16 * 4);
  EXPECT_EQ(XLLM_CEILING_GRAIN % pass.operations_a_turn, 0);
}

// Above the loop's turn, below it, and not a whole number of lines.
TEST(Interface, test_threads_share_all_bytes) {
  for (const std::int32_t threads : {1, 2, 3, 7}) {
    for (const std::size_t bytes : {1U, 63U, 64U, 65U, 1000U, 4097U, 99999U}) {
      const auto size = static_cast<std::int64_t>(bytes);
      const Guarded from(bytes, Flush::kBack);
      fill(from, 1);
      for (const auto copy : {xllm_ceiling_copy, xllm_ceiling_copy_streaming}) {
        const Guarded to(bytes, Flush::kBack);
        ASSERT_GT(copy(to.data(), from.data(), size, threads, 1), 0.0);
        ASSERT_EQ(bytes_of(to), bytes_of(from)) << bytes << "/" << threads;
        ASSERT_TRUE(to.intact());
      }
      ASSERT_GT(xllm_ceiling_read(from.data(), size, threads, 1), 0.0);
    }
  }
}

TEST(Interface, test_repetitions_are_exact) {
  const Guarded at(1000, Flush::kBack);
  fill(at, 1);
  const std::vector<std::byte> before = bytes_of(at);
  for (const std::int32_t threads : {1, 2}) {
    ASSERT_GT(xllm_ceiling_update(at.data(), 1000, threads, 4), 0.0);
    EXPECT_EQ(bytes_of(at), before);
    ASSERT_GT(xllm_ceiling_update(at.data(), 1000, threads, 3), 0.0);
    for (std::size_t i = 0; i < before.size(); ++i) {
      ASSERT_EQ(at.data()[i], before[i] ^ std::byte{0x5a});
    }
    ASSERT_GT(xllm_ceiling_update(at.data(), 1000, threads, 1), 0.0);
  }
  EXPECT_GT(xllm_ceiling_fma(6L * XLLM_CEILING_GRAIN, 2, 2), 0.0);
}

void expect_refused(double seconds, const char* part) {
  EXPECT_LT(seconds, 0.0);
  EXPECT_NE(std::strstr(xllm_ceiling_error(), part), nullptr)
      << xllm_ceiling_error() << " does not say: " << part;
}

TEST(Interface, test_dot_measured_or_refused_by_the_level) {
  const std::int64_t operations = 6L * XLLM_CEILING_GRAIN;
  if (std::strcmp(xllm_ceiling_level(), "avx512bf16") == 0) {
    EXPECT_GT(xllm_ceiling_dot(operations, 2, 2), 0.0);
    expect_refused(xllm_ceiling_dot(XLLM_CEILING_GRAIN, 2, 1), "multiple");
    expect_refused(xllm_ceiling_dot(0, 1, 1), "multiple");
  } else {
    expect_refused(xllm_ceiling_dot(operations, 2, 2), xllm_ceiling_level());
  }
  expect_refused(xllm_ceiling_dot(operations, 0, 1), "1 to 256, got 0");
}

TEST(Interface, test_wrong_arguments_refused_and_nothing_written) {
  const Guarded at(256, Flush::kBack);
  std::byte* const data = at.data();
  expect_refused(xllm_ceiling_read(nullptr, 64, 1, 1), "not be null");
  expect_refused(xllm_ceiling_copy(data, nullptr, 64, 1, 1), "not be null");
  expect_refused(xllm_ceiling_update(data, 0, 1, 1), "at least 1, got 0");
  expect_refused(xllm_ceiling_update(data, -1, 1, 1), "at least 1, got -1");
  expect_refused(xllm_ceiling_update(data, 64, 0, 1), "1 to 256, got 0");
  expect_refused(xllm_ceiling_update(data, 64, 257, 1), "1 to 256, got 257");
  expect_refused(xllm_ceiling_update(data, 64, 1, 0), "at least 1, got 0");
  expect_refused(xllm_ceiling_copy(data, data, 64, 1, 1), "apart");
  expect_refused(xllm_ceiling_copy_streaming(data + 63, data, 64, 1, 1),
                 "apart");
  expect_refused(xllm_ceiling_copy(data, data + 63, 64, 1, 1), "apart");
  expect_refused(xllm_ceiling_fma(XLLM_CEILING_GRAIN, 2, 1), "multiple");
  expect_refused(xllm_ceiling_fma(0, 1, 1), "multiple");
  for (std::size_t i = 0; i < at.bytes(); ++i) {
    ASSERT_EQ(data[i], std::byte{Guarded::kFiller});
  }
  ASSERT_GT(xllm_ceiling_copy(data + 64, data, 64, 1, 1), 0.0);
  EXPECT_STREQ(xllm_ceiling_error(), "");
}

// Processors that this process may run on.
std::vector<int> allowed() {
  cpu_set_t set;
  std::vector<int> found;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return found;
  for (int n = 0; n < CPU_SETSIZE; ++n) {
    if (CPU_ISSET(n, &set) != 0) found.push_back(n);
  }
  return found;
}

void stay_on(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int n : processors) CPU_SET(n, &set);
  ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
}

TEST(Places, test_take_a_taken_processor_goes_to_another) {
  const std::vector<int> all = allowed();
  if (all.size() < 2) GTEST_SKIP() << "this process may use one processor only";
  const std::vector<int> first = {all[0]};
  const std::vector<int> both = {all[0], all[1]};
  ceilings::Places places;
  int there = -1;
  std::thread([&] {
    stay_on(first);
    places.take();
    EXPECT_EQ(allowed(), first);
  }).join();
  std::thread([&] {
    stay_on(first);
    stay_on(both);
    places.take();
    there = ::sched_getcpu();
  }).join();
  EXPECT_EQ(there, all[1]);
}

TEST(Places, test_take_without_another_stays) {
  const std::vector<int> all = allowed();
  if (all.empty()) GTEST_SKIP() << "more than 1024 processors";
  const std::vector<int> first = {all[0]};
  ceilings::Places places;
  for (int n = 0; n < 2; ++n) {
    std::thread([&] {
      stay_on(first);
      places.take();
      EXPECT_EQ(::sched_getcpu(), first[0]);
      EXPECT_EQ(allowed(), first);
    }).join();
  }
}

// Whatever else the machine does: two threads on one processor cannot both run.
TEST(Interface, test_waited_counts_what_threads_on_one_processor_wait) {
  const std::vector<int> all = allowed();
  if (all.empty()) GTEST_SKIP() << "more than 1024 processors";
  std::thread([&] {
    stay_on({all[0]});
    std::int64_t repetitions = 1000;
    double seconds = 0.0;
    do {
      repetitions *= 2;
      seconds = xllm_ceiling_fma(std::int64_t{2} * XLLM_CEILING_GRAIN, 2,
                                 repetitions) *
                static_cast<double>(repetitions);
    } while (seconds < 0.2);  // many slices of the scheduler
    EXPECT_GT(xllm_ceiling_waited(), seconds / 4);
  }).join();
}

TEST(Interface, test_level_is_the_forced_one) {
  const char* forced = std::getenv("XLLM_KERNEL_SIMD_LEVEL");
  if (forced == nullptr) {
    EXPECT_STREQ(xllm_ceiling_level(), simd_level().name);
    return;
  }
  bool available = false;
  for (const simd::LevelInfo& info : simd::levels()) {
    available = available ||
                (std::string(info.name) == forced && machine_has(info.level));
  }
  EXPECT_STREQ(xllm_ceiling_level(), available ? forced : "");
  const double seconds = xllm_ceiling_fma(XLLM_CEILING_GRAIN, 1, 1);
  if (available) {
    EXPECT_GT(seconds, 0.0);
  } else {
    expect_refused(seconds, "XLLM_KERNEL_SIMD_LEVEL");
  }
}

}  // namespace
}  // namespace xllm_kernel::test
