// Device memory: blocks, poison, limits, and what may not be done with them.
// Tasks that misuse memory are in operand_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "test/runtime/support.h"

namespace ascend_sim {
namespace {

struct MemoryTest : testing::Test {
  Address allocate(std::size_t bytes) {
    Address address = 0;
    expect_ok(runtime.allocate(bytes, &address));
    return address;
  }

  Runtime runtime{small_settings()};
};

bool is_poisoned(const std::byte* bytes, std::size_t count) {
  return std::all_of(bytes, bytes + count,
                     [](std::byte each) { return each == std::byte{0xff}; });
}

TEST_F(MemoryTest, fresh_block_reads_as_nan) {
  const Floats fresh(runtime, 100000);
  for (const float value : fresh.fetch()) {
    ASSERT_TRUE(std::isnan(value));
  }
}

TEST_F(MemoryTest, blocks_begin_at_granules_and_do_not_overlap) {
  const Address first = allocate(1);
  const Address second = allocate(513);
  const Address third = allocate(512);
  EXPECT_EQ(first % 512, 0U);
  EXPECT_EQ(second - first, 512U);
  EXPECT_EQ(third - second, 1024U);
}

TEST_F(MemoryTest, latest_freed_block_that_fits_is_reused) {
  const Address large = allocate(4096);
  const Address keep = allocate(512);
  const Address small = allocate(512);
  const Address last = allocate(512);
  expect_ok(runtime.free(large));
  expect_ok(runtime.free(small));
  EXPECT_EQ(allocate(512), small);
  EXPECT_EQ(allocate(4096), large);
  EXPECT_NE(keep, last);
}

TEST_F(MemoryTest, reused_block_is_poisoned_again) {
  for (const std::size_t count : {std::size_t{8}, std::size_t{100000}}) {
    const Floats before(runtime, count);
    const std::vector<float> ones(count, 1.0F);
    expect_ok(
        runtime.copy(pointer(before.address), ones.data(), before.bytes()));
    ASSERT_EQ(before.fetch(), ones);
    expect_ok(runtime.free(before.address));
    const Floats after(runtime, count);
    ASSERT_EQ(after.address, before.address);
    for (const float value : after.fetch()) {
      ASSERT_TRUE(std::isnan(value));
    }
  }
}

TEST_F(MemoryTest, freeing_a_block_leaves_its_neighbours) {
  const Floats left(runtime, 20000);
  const Floats middle(runtime, 20000);
  const Floats right(runtime, 20000);
  const std::vector<float> ones(20000, 1.0F);
  for (const Floats* const each : {&left, &middle, &right}) {
    expect_ok(runtime.copy(pointer(each->address), ones.data(), each->bytes()));
  }
  expect_ok(runtime.free(middle.address));
  EXPECT_EQ(left.fetch(), ones);
  EXPECT_EQ(right.fetch(), ones);
  EXPECT_TRUE(is_poisoned(runtime.shadow(middle.address), 512));
}

TEST_F(MemoryTest, freed_neighbours_make_room_for_a_large_block) {
  const std::size_t third = runtime.memory_use().total_bytes / 3 / 512 * 512;
  const Address a = allocate(third);
  const Address b = allocate(third);
  const Address c = allocate(third);
  Address none = 0;
  EXPECT_EQ(runtime.allocate(third, &none), Status::kOutOfMemory);
  expect_ok(runtime.free(b));
  expect_ok(runtime.free(a));
  EXPECT_EQ(allocate(2 * third), a);
  expect_ok(runtime.free(c));
}

TEST_F(MemoryTest, use_is_counted_for_each_device) {
  const std::size_t total = runtime.memory_use().total_bytes;
  EXPECT_EQ(total, std::size_t{16} << 20U);
  EXPECT_EQ(runtime.memory_use().free_bytes, total);
  const Address block = allocate(1000);
  EXPECT_EQ(runtime.memory_use().free_bytes, total - 1024);
  expect_ok(runtime.set_device(1));
  EXPECT_EQ(runtime.memory_use().free_bytes, total);
  EXPECT_EQ(runtime.device_of(pointer(block)), 0);
  EXPECT_EQ(runtime.device_of(pointer(allocate(1))), 1);
  EXPECT_EQ(runtime.device_of(&block), std::nullopt);
}

TEST_F(MemoryTest, too_much_is_out_of_memory_and_nothing_changes) {
  Address none = 0;
  EXPECT_EQ(runtime.allocate(std::size_t{17} << 20U, &none),
            Status::kOutOfMemory);
  EXPECT_EQ(runtime.allocate(SIZE_MAX, &none), Status::kOutOfMemory);
  EXPECT_EQ(none, 0U);
  EXPECT_EQ(runtime.memory_use().free_bytes, runtime.memory_use().total_bytes);
  EXPECT_NE(runtime.recent_message().find("no room for"), std::string::npos);
}

TEST_F(MemoryTest, nothing_asked_for_is_invalid) {
  Address none = 0;
  EXPECT_EQ(runtime.allocate(0, &none), Status::kInvalidParam);
  EXPECT_EQ(runtime.allocate(1, nullptr), Status::kInvalidParam);
  void* host = nullptr;
  EXPECT_EQ(runtime.allocate_host(0, &host), Status::kInvalidParam);
}

TEST_F(MemoryTest, wrong_frees_are_refused_and_reported) {
  const Address block = allocate(2048);
  EXPECT_EQ(runtime.free(block + 512), Status::kMemoryFree);
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"stray-free"});
  expect_ok(runtime.free(block));
  EXPECT_EQ(runtime.free(block), Status::kMemoryFree);
  EXPECT_EQ(kinds(runtime.take_reports()), Names{"double-free"});
  int local = 0;
  EXPECT_EQ(runtime.free(reinterpret_cast<Address>(&local)),
            Status::kMemoryFree);
  EXPECT_EQ(runtime.free_host(&local), Status::kMemoryFree);
  EXPECT_EQ(kinds(runtime.take_reports()), (Names{"stray-free", "stray-free"}));
}

TEST_F(MemoryTest, pinned_memory_is_the_hosts) {
  void* host = nullptr;
  expect_ok(runtime.allocate_host(100, &host));
  std::memset(host, 1, 100);
  EXPECT_EQ(runtime.device_of(host), std::nullopt);
  EXPECT_TRUE(runtime.is_pinned(host));
  EXPECT_TRUE(runtime.is_pinned(static_cast<std::byte*>(host) + 99));
  EXPECT_FALSE(runtime.is_pinned(static_cast<std::byte*>(host) + 100));
  EXPECT_FALSE(runtime.is_pinned(static_cast<const void*>(&host)));
  expect_ok(runtime.free_host(host));
  EXPECT_FALSE(runtime.is_pinned(host));
}

TEST_F(MemoryTest, bytes_are_live_within_one_block) {
  const Address block = allocate(100);
  EXPECT_TRUE(runtime.live(block, 100));
  EXPECT_TRUE(runtime.live(block + 60, 40));
  EXPECT_FALSE(runtime.live(block + 60, 41));
  expect_ok(runtime.free(block));
  EXPECT_FALSE(runtime.live(block, 1));
  EXPECT_FALSE(runtime.live(reinterpret_cast<Address>(&block), 1));
}

TEST_F(MemoryTest, device_belongs_to_the_thread) {
  expect_ok(runtime.set_device(1));
  std::thread([this] {
    EXPECT_EQ(runtime.device(), 0);
    expect_ok(runtime.set_device(0));
  }).join();
  EXPECT_EQ(runtime.device(), 1);
  EXPECT_EQ(runtime.set_device(2), Status::kInvalidDevice);
  EXPECT_EQ(runtime.set_device(-1), Status::kInvalidDevice);
  EXPECT_EQ(runtime.device(), 1);
}

std::size_t resident_pages() {
  std::size_t all = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

TEST(Memory, block_that_nobody_touches_costs_no_memory) {
  Settings settings = small_settings();
  settings.memory_bytes = std::size_t{4} << 30U;
  Runtime runtime(settings);
  const std::size_t before = resident_pages();
  Address block = 0;
  expect_ok(runtime.allocate(std::size_t{3} << 30U, &block));
  expect_ok(runtime.free(block));
  const Floats touched(runtime, 1000);
  EXPECT_TRUE(std::isnan(touched.first()));
  EXPECT_LT(resident_pages() - before, 1000U);
}

// The sanitizers' runtimes turn the signal into a report and an exit.
TEST(MemoryDeathTest, host_that_dereferences_a_device_address_dies) {
  Runtime runtime(small_settings());
  const Floats block(runtime, 4);
  EXPECT_DEATH(*reinterpret_cast<volatile float*>(block.address) = 1.0F, "");
  EXPECT_DEATH(
      static_cast<void>(*reinterpret_cast<volatile float*>(block.address)), "");
}

}  // namespace
}  // namespace ascend_sim
