// How many processors the control groups grant, on invented file systems.
#include "simd/core/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace xllm_kernel::test {
namespace {

using simd::kNoQuota;
using simd::quota_count;

class Quota : public testing::Test {
 protected:
  Quota() {
    root_ = std::filesystem::temp_directory_path() /
            ("xllm_kernel_quota_" + std::to_string(getpid()));
    std::filesystem::create_directories(root_);
  }
  ~Quota() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  [[nodiscard]] int quota() const {
    return quota_count((root_ / "proc").c_str(), (root_ / "sys").c_str());
  }

 private:
  std::filesystem::path root_;
};

TEST_F(Quota, test_no_files_no_quota) { EXPECT_EQ(quota(), kNoQuota); }

TEST_F(Quota, test_version_2_rounded_up) {
  write("proc/self/cgroup", "0::/box\n");
  write("sys/fs/cgroup/box/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 2);
  write("sys/fs/cgroup/box/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2);
  write("sys/fs/cgroup/box/cpu.max", "1000 100000\n");
  EXPECT_EQ(quota(), 1);
  write("sys/fs/cgroup/box/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), kNoQuota);
}

TEST_F(Quota, test_version_2_least_of_the_groups_above) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/cpu.max", "800000 100000\n");
  write("sys/fs/cgroup/outer/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3);
  write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(quota(), 1);
}

TEST_F(Quota, test_version_2_at_the_root) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 4);
}

TEST_F(Quota, test_version_1_of_the_cpu_controller) {
  write("proc/self/cgroup",
        "5:cpuset:/box\n4:cpu,cpuacct:/box\n3:memory:/other\n");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "250000\n");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 3);
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota(), kNoQuota);
}

TEST_F(Quota, test_odd_files_no_quota) {
  for (const char* text : {"", "lots", "100000", "100000 0", "-5 100000"}) {
    write("proc/self/cgroup", "0::/box\nnonsense\n1:\n");
    write("sys/fs/cgroup/box/cpu.max", text);
    EXPECT_EQ(quota(), kNoQuota) << text;
  }
}

TEST(Affinity, test_count_follows_the_mask) {
  std::thread([] {
    EXPECT_GE(simd::affinity_count(), 1);
    cpu_set_t one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(one), &one), 0);
    int first = 0;
    while (!CPU_ISSET(first, &one)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(simd::affinity_count(), 1);
  }).join();
}

}  // namespace
}  // namespace xllm_kernel::test
