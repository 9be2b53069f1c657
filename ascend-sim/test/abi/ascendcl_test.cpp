// libascendcl's exported symbols: codes, handles, what is refused. What they do
// to devices is the runtime's own tests' matter.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "abi/ascend_sim.h"
#include "acl/acl.h"

namespace {

TEST(System, initialising_twice_is_told) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST(System, message_belongs_to_the_thread_that_failed) {
  EXPECT_EQ(aclrtSetDevice(99), ACL_ERROR_RT_INVALID_DEVICEID);
  ASSERT_NE(aclGetRecentErrMsg(), nullptr);
  std::thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr); }).join();
}

TEST(System, says_that_it_is_simulated) {
  EXPECT_STRNE(ascend_sim_version(), "");
}

TEST(System, options_are_handed_back) {
  std::int64_t value = 7;
  ASSERT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 0);
  ASSERT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), ACL_SUCCESS);
  ASSERT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1);
}

TEST(Device, current_one_belongs_to_the_thread) {
  std::int32_t device = -1;
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  std::thread([] {
    std::int32_t other = -1;
    EXPECT_EQ(aclrtGetDevice(&other), ACL_SUCCESS);
    EXPECT_EQ(other, 0);
  }).join();
  ASSERT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
  EXPECT_EQ(device, 1);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
}

TEST(Device, context_brings_its_device_back) {
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS);
  std::int32_t device = -1;
  ASSERT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
  EXPECT_EQ(device, 1);
  int stray = 0;
  EXPECT_EQ(aclrtSetCurrentContext(&stray), ACL_ERROR_RT_INVALID_HANDLE);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
}

TEST(Device, the_910b3_has_20_cube_and_40_vector_cores) {
  ASSERT_STREQ(aclrtGetSocName(), "Ascend910B3");
  std::int64_t value = 0;
  ASSERT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &value),
            ACL_SUCCESS);
  EXPECT_EQ(value, 40);
  ASSERT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUBE_CORE_NUM, &value),
            ACL_SUCCESS);
  EXPECT_EQ(value, 20);
  EXPECT_EQ(aclrtGetDeviceInfo(9, ACL_DEV_ATTR_CUBE_CORE_NUM, &value),
            ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_WARP_SIZE, &value),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

TEST(Memory, attributes_tell_device_pinned_and_other_memory) {
  void* device = nullptr;
  void* pinned = nullptr;
  int other = 0;
  ASSERT_EQ(aclrtMalloc(&device, 64, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
  ASSERT_EQ(aclrtMallocHost(&pinned, 64), ACL_SUCCESS);
  const auto type_of = [](const void* pointer) {
    aclrtPtrAttributes attributes{};
    EXPECT_EQ(aclrtPointerGetAttributes(pointer, &attributes), ACL_SUCCESS);
    return attributes.location.type;
  };
  EXPECT_EQ(type_of(device), ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(type_of(pinned), ACL_MEM_LOCATION_TYPE_HOST);
  EXPECT_EQ(type_of(&other), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  EXPECT_EQ(aclrtFree(device), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(pinned), ACL_SUCCESS);
}

TEST(Memory, copy_beyond_the_destination_is_refused) {
  int from[2] = {1, 2};
  int to[1] = {0};
  EXPECT_EQ(
      aclrtMemcpy(to, sizeof to, from, sizeof from, ACL_MEMCPY_HOST_TO_HOST),
      ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "aclrtMemcpy: count 8 exceeds the destination's 4 bytes");
}

TEST(Streams, unknown_handle_is_refused) {
  int stray = 0;
  EXPECT_EQ(aclrtSynchronizeStream(&stray), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtDestroyEvent(&stray), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclmdlRIDestroy(&stray), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST(Streams, host_function_runs_in_the_streams_order) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  int calls = 0;
  ASSERT_EQ(
      aclrtLaunchHostFunc(
          stream, [](void* count) { ++*static_cast<int*>(count); }, &calls),
      ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(calls, 1);
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  ASSERT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST(Unsupported, functions_fail_by_name) {
  EXPECT_EQ(aclrtUnmapMem(nullptr), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_STREQ(aclGetRecentErrMsg(),
               "aclrtUnmapMem: the simulated runtime does not support this "
               "function");
  aclrtEvent event = nullptr;
  EXPECT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

}  // namespace
