// The exported aclnn symbols, called as torch_npu calls them: descriptors are
// made, both phases run, descriptors are destroyed at once.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"

// CANN's headers with these are not in torch_npu's wheel.
struct aclTensor;
struct aclOpExecutor;
extern "C" {
aclTensor* aclCreateTensor(const std::int64_t*, std::uint64_t, aclDataType,
                           const std::int64_t*, std::int64_t, aclFormat,
                           const std::int64_t*, std::uint64_t, void*);
int aclDestroyTensor(const aclTensor*);
int aclnnRmsNormGetWorkspaceSize(const aclTensor*, const aclTensor*, double,
                                 const aclTensor*, const aclTensor*,
                                 std::uint64_t*, aclOpExecutor**);
int aclnnRmsNorm(void*, std::uint64_t, aclOpExecutor*, aclrtStream);
int aclDestroyAclOpExecutor(aclOpExecutor*);
}

namespace {

constexpr std::int64_t kWidth = 4;

class Opapi : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    for (void** memory : {&x_, &gamma_, &y_, &rstd_, &workspace_}) {
      ASSERT_EQ(aclrtMalloc(memory, kBytes, ACL_MEM_MALLOC_NORMAL_ONLY),
                ACL_SUCCESS);
    }
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
    for (void* memory : {x_, gamma_, y_, rstd_, workspace_}) {
      EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
    }
  }

  // As torch_npu describes a view: its storage's address, and an offset.
  static aclTensor* describe(void* storage, std::int64_t width,
                             std::int64_t offset = 0) {
    const std::array<std::int64_t, 1> sizes = {width};
    const std::array<std::int64_t, 1> strides = {1};
    return aclCreateTensor(sizes.data(), 1, ACL_FLOAT, strides.data(), offset,
                           ACL_FORMAT_ND, sizes.data(), 1, storage);
  }

  void put(void* memory, const std::array<float, 2 * kWidth>& values) {
    EXPECT_EQ(aclrtMemcpy(memory, kBytes, values.data(), sizeof values,
                          ACL_MEMCPY_HOST_TO_DEVICE),
              ACL_SUCCESS);
  }
  std::array<float, 2 * kWidth> get(const void* memory) {
    std::array<float, 2 * kWidth> values{};
    EXPECT_EQ(aclrtMemcpy(values.data(), sizeof values, memory, sizeof values,
                          ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_SUCCESS);
    return values;
  }

  // The first phase, with descriptors that are gone when it returns.
  int prepare(std::int64_t gamma_width, std::int64_t x_offset = 0) {
    aclTensor* x = describe(x_, kWidth, x_offset);
    aclTensor* gamma = describe(gamma_, gamma_width);
    aclTensor* y = describe(y_, kWidth);
    aclTensor* rstd = describe(rstd_, 1);
    const int status = aclnnRmsNormGetWorkspaceSize(
        x, gamma, 0.0, y, rstd, &workspace_bytes_, &executor_);
    for (const aclTensor* tensor : {x, gamma, y, rstd}) {
      EXPECT_EQ(aclDestroyTensor(tensor), 0);
    }
    return status;
  }

  static constexpr std::size_t kBytes = 4096;
  aclrtStream stream_ = nullptr;
  void* x_ = nullptr;
  void* gamma_ = nullptr;
  void* y_ = nullptr;
  void* rstd_ = nullptr;
  void* workspace_ = nullptr;
  std::uint64_t workspace_bytes_ = 0;
  aclOpExecutor* executor_ = nullptr;
};

TEST_F(Opapi, task_outlives_its_descriptors_and_counts_the_offset) {
  put(x_, {9, 9, 9, 2, -2, 2, -2, 9});
  put(gamma_, {1, 1, 1, 3});
  ASSERT_EQ(prepare(kWidth, 3), 0);
  ASSERT_LE(workspace_bytes_, kBytes);
  ASSERT_EQ(aclnnRmsNorm(workspace_, workspace_bytes_, executor_, stream_), 0);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  const auto y = get(y_);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], -1);
  EXPECT_EQ(y[3], -3);
  EXPECT_EQ(get(rstd_)[0], 0.5F);
}

TEST_F(Opapi, refused_operands_give_a_code_and_a_message) {
  EXPECT_EQ(prepare(kWidth - 1), 161002);
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "aclnnRmsNorm: gamma's sizes must be the last ones of x [4], "
               "got [3]");
}

TEST_F(Opapi, missing_operand_is_named) {
  EXPECT_EQ(
      aclnnRmsNormGetWorkspaceSize(nullptr, nullptr, 0.0, nullptr, nullptr,
                                   &workspace_bytes_, &executor_),
      161001);
  EXPECT_STREQ(aclGetRecentErrMsg(), "aclnnRmsNorm: a tensor must not be null");
}

TEST_F(Opapi, workspace_that_is_too_small_is_refused) {
  ASSERT_EQ(prepare(kWidth), 0);
  ASSERT_GT(workspace_bytes_, 0U);
  const std::string wanted = std::to_string(workspace_bytes_);
  EXPECT_EQ(aclnnRmsNorm(workspace_, workspace_bytes_ - 1, executor_, stream_),
            161002);
  EXPECT_EQ(aclGetRecentErrMsg(), "aclnnRmsNorm: workspace must have " +
                                      wanted + " bytes, got " +
                                      std::to_string(workspace_bytes_ - 1));
}

TEST_F(Opapi, executor_that_is_not_used_is_destroyed) {
  ASSERT_EQ(prepare(kWidth), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor_), 0);
}

TEST(OpCompiler, operator_that_is_not_simulated_is_refused_by_name) {
  EXPECT_EQ(aclopCompileAndExecute("Tile", 0, nullptr, nullptr, 0, nullptr,
                                   nullptr, nullptr, ACL_ENGINE_SYS,
                                   ACL_COMPILE_SYS, nullptr, nullptr),
            ACL_ERROR_OP_NOT_FOUND);
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "aclopCompileAndExecute: operator Tile is not simulated");
}

TEST(OpCompiler, options_are_kept) {
  ASSERT_EQ(aclSetCompileopt(ACL_OP_JIT_COMPILE, "disable"), ACL_SUCCESS);
  std::array<char, 16> value{};
  ASSERT_EQ(aclGetCompileoptSize(ACL_OP_JIT_COMPILE), 8U);
  ASSERT_EQ(aclGetCompileopt(ACL_OP_JIT_COMPILE, value.data(), value.size()),
            ACL_SUCCESS);
  EXPECT_STREQ(value.data(), "disable");
}

}  // namespace
