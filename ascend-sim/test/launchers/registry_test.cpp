// Handles of device binaries, and which binaries are refused.
// Launches nothing.
#include "launchers/registry.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/launchers/tiny_elf.h"

namespace ascend_sim {
namespace {

using testing::TinyElf;

constexpr std::uint32_t kVectorCores = 0x41415246;

class RegistryTest : public ::testing::Test {
 protected:
  static Settings settings(const std::string& faults) {
    Settings made;
    made.memory_bytes = 1U << 20U;
    made.faults = faults;
    return made;
  }
  static DeviceBinary binary(const std::vector<std::byte>& image,
                             std::uint32_t magic = kVectorCores) {
    return {magic, 0, image.data(), image.size()};
  }

  const std::vector<std::byte> image_ =
      TinyElf().kernel({"add_7", 0x28}).kernel({"norm_16", 0x68}).build();
  Registry registry_;
};

TEST_F(RegistryTest, Binary_IsFoundUnderItsHandle) {
  Runtime runtime(settings(""));
  void* handle = nullptr;
  ASSERT_EQ(register_binary(runtime, registry_, binary(image_), &handle),
            Status::kOk);
  ASSERT_NE(handle, nullptr);
  const auto kernels = registry_.find(handle);
  ASSERT_NE(kernels, nullptr);
  EXPECT_EQ(kernels->size(), 2U);
  EXPECT_EQ(kernels->at(16).name, "norm");
  EXPECT_EQ(kernels->at(7).argument_bytes, 0x28U);
}

TEST_F(RegistryTest, RemovedHandle_IsUnknownAndNeverGivenAgain) {
  void* const first = registry_.add({});
  EXPECT_TRUE(registry_.remove(first));
  EXPECT_FALSE(registry_.remove(first));
  EXPECT_EQ(registry_.find(first), nullptr);
  EXPECT_NE(registry_.add({}), first);
  EXPECT_EQ(registry_.find(nullptr), nullptr);
}

TEST_F(RegistryTest, EveryMagicOfTheLaunchers_IsAccepted) {
  Runtime runtime(settings(""));
  for (const std::uint32_t magic : {0x43554245U, 0x41415246U, 0x41494343U}) {
    void* handle = nullptr;
    EXPECT_EQ(
        register_binary(runtime, registry_, binary(image_, magic), &handle),
        Status::kOk);
  }
}

TEST_F(RegistryTest, OtherMagic_IsRefused) {
  Runtime runtime(settings(""));
  void* handle = nullptr;
  EXPECT_EQ(register_binary(runtime, registry_, binary(image_, 7), &handle),
            Status::kInvalidParam);
  EXPECT_EQ(handle, nullptr);
  EXPECT_NE(runtime.recent_message().find("unknown magic number 7"),
            std::string::npos);
}

TEST_F(RegistryTest, NoData_IsRefused) {
  Runtime runtime(settings(""));
  void* handle = nullptr;
  EXPECT_EQ(register_binary(runtime, registry_, {kVectorCores, 0, nullptr, 100},
                            &handle),
            Status::kInvalidParam);
  EXPECT_EQ(handle, nullptr);
}

TEST_F(RegistryTest, DamagedBinary_IsRefusedWithItsReason) {
  Runtime runtime(settings(""));
  auto damaged = image_;
  damaged[0] = std::byte{0};
  void* handle = nullptr;
  EXPECT_EQ(register_binary(runtime, registry_, binary(damaged), &handle),
            Status::kInvalidParam);
  EXPECT_EQ(handle, nullptr);
  EXPECT_NE(runtime.recent_message().find("does not begin like an ELF file"),
            std::string::npos);
}

TEST_F(RegistryTest, FaultPoint_MakesTheChosenRegistrationFail) {
  Runtime runtime(settings("register:2"));
  void* handle = nullptr;
  EXPECT_EQ(register_binary(runtime, registry_, binary(image_), &handle),
            Status::kOk);
  handle = nullptr;
  EXPECT_EQ(register_binary(runtime, registry_, binary(image_), &handle),
            Status::kInternal);
  EXPECT_EQ(handle, nullptr);
  EXPECT_NE(runtime.recent_message().find("ASCEND_SIM_FAULT"),
            std::string::npos);
  EXPECT_EQ(register_binary(runtime, registry_, binary(image_), &handle),
            Status::kOk);
}

}  // namespace
}  // namespace ascend_sim
