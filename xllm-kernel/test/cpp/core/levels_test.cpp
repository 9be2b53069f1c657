// The choice of a SIMD level on invented machines, and the one made here.
#include "simd/core/levels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace xllm_kernel::test {
namespace {

using simd::choose_level;
using simd::CpuFeatures;
using simd::CpuidFacts;
using simd::features_from;
using simd::LevelChoice;

// All that level avx2 looks at, and a system that saves XMM and YMM.
constexpr CpuidFacts kHaswell{
    .leaf1_ecx = 1U << 12 | 1U << 27 | 1U << 28 | 1U << 29,
    .leaf7_ebx = 1U << 5,
    .xcr0 = 0x7};
constexpr CpuFeatures kHaswellFeatures{.avx2 = true, .fma = true, .f16c = true};
// The same for level avx512.
constexpr CpuidFacts kSkylakeServer{
    .leaf1_ecx = kHaswell.leaf1_ecx,
    .leaf7_ebx = 1U << 5 | 1U << 16 | 1U << 17 | 1U << 30 | 1U << 31,
    .xcr0 = 0xe7};
constexpr CpuFeatures kSkylakeFeatures{
    .avx2 = true, .fma = true, .f16c = true, .avx512 = true};
// The same for level avx512bf16.
constexpr CpuidFacts kCooperLake{.leaf1_ecx = kSkylakeServer.leaf1_ecx,
                                 .leaf7_ebx = kSkylakeServer.leaf7_ebx,
                                 .leaf7_1_eax = 1U << 5,
                                 .xcr0 = 0xe7};
constexpr CpuFeatures kAll{.avx2 = true,
                           .fma = true,
                           .f16c = true,
                           .avx512 = true,
                           .avx512bf16 = true};

TEST(Cpu, test_features_all_bits_all_present) {
  EXPECT_EQ(features_from(kHaswell), kHaswellFeatures);
  EXPECT_EQ(features_from(kSkylakeServer), kSkylakeFeatures);
  EXPECT_EQ(features_from(kCooperLake), kAll);
}

TEST(Cpu, test_features_system_does_not_save_zmm_no_avx512) {
  CpuidFacts facts = kCooperLake;
  for (const std::uint64_t missing : {0x20U, 0x40U, 0x80U}) {
    facts.xcr0 = kSkylakeServer.xcr0 & ~missing;
    EXPECT_EQ(features_from(facts), kHaswellFeatures);
  }
}

TEST(Cpu, test_features_each_part_of_avx512_missing_no_avx512) {
  CpuidFacts facts = kCooperLake;
  for (const int bit : {16, 17, 30, 31}) {
    facts.leaf7_ebx = kSkylakeServer.leaf7_ebx & ~(1U << bit);
    EXPECT_EQ(features_from(facts), kHaswellFeatures);
  }
}

TEST(Cpu, test_features_system_does_not_save_ymm_none) {
  CpuidFacts facts = kHaswell;
  facts.xcr0 = 0x3;
  EXPECT_EQ(features_from(facts), CpuFeatures{});
  facts.xcr0 = 0x5;
  EXPECT_EQ(features_from(facts), CpuFeatures{});
}

TEST(Cpu, test_features_without_osxsave_none) {
  CpuidFacts facts = kHaswell;
  facts.leaf1_ecx &= ~(1U << 27);
  EXPECT_EQ(features_from(facts), CpuFeatures{});
}

TEST(Cpu, test_features_without_avx_none) {
  CpuidFacts facts = kHaswell;
  facts.leaf1_ecx &= ~(1U << 28);
  EXPECT_EQ(features_from(facts), CpuFeatures{});
}

TEST(Levels, test_table_names_unique_and_scalar_last) {
  EXPECT_STREQ(simd::levels().back().name, "scalar");
  EXPECT_TRUE(simd::levels().back().available({}));
  for (const simd::LevelInfo& a : simd::levels()) {
    for (const simd::LevelInfo& b : simd::levels()) {
      EXPECT_EQ(a.level == b.level, std::string(a.name) == b.name);
    }
  }
}

TEST(Levels, test_choose_nothing_forced_best_available) {
  LevelChoice choice;
  choose_level(std::nullopt, kAll, &choice);
  EXPECT_EQ(choice.result.status, Status::kOk);
  EXPECT_EQ(choice.level, simd::levels().front().level);
}

#if defined(__x86_64__)
TEST(Levels, test_choose_each_missing_feature_scalar) {
  for (const CpuFeatures& features :
       {CpuFeatures{.fma = true, .f16c = true, .avx512 = true},
        CpuFeatures{.avx2 = true, .f16c = true, .avx512 = true},
        CpuFeatures{.avx2 = true, .fma = true, .avx512 = true}}) {
    LevelChoice choice;
    choose_level(std::nullopt, features, &choice);
    EXPECT_STREQ(choice.result.name, "scalar");
  }
}
#endif

TEST(Levels, test_choose_forced_every_level_itself) {
  for (const simd::LevelInfo& info : simd::levels()) {
    LevelChoice choice;
    choose_level(info.name, kAll, &choice);
    EXPECT_EQ(choice.result.status, Status::kOk);
    EXPECT_EQ(choice.level, info.level);
    EXPECT_STREQ(choice.result.name, info.name);
  }
}

TEST(Levels, test_choose_forced_unknown_error_lists_levels) {
  for (const char* forced : {"doesnotexist", "", "AVX2", "avx2 ", "avx"}) {
    LevelChoice choice;
    choose_level(forced, kAll, &choice);
    EXPECT_EQ(choice.result.status, Status::kUnknownLevel);
    const std::string message = choice.result.message;
    for (const simd::LevelInfo& info : simd::levels()) {
      EXPECT_NE(message.find(info.name), std::string::npos) << message;
    }
    EXPECT_NE(message.find(forced), std::string::npos) << message;
    EXPECT_STREQ(choice.result.name, "");
  }
}

#if defined(__x86_64__)
TEST(Levels, test_choose_forced_unavailable_error_lists_available_only) {
  LevelChoice choice;
  choose_level("avx2", {}, &choice);
  EXPECT_EQ(choice.result.status, Status::kUnavailableLevel);
  EXPECT_STREQ(choice.result.message,
               "XLLM_KERNEL_SIMD_LEVEL must name a SIMD level that this "
               "machine has (scalar), got 'avx2', which processor or operating "
               "system lacks; unset it for the best level");
}
#endif

TEST(Levels, test_choose_forced_very_long_message_cut) {
  const std::string forced(5000, 'x');
  LevelChoice choice;
  choose_level(forced, kAll, &choice);
  EXPECT_EQ(choice.result.status, Status::kUnknownLevel);
  EXPECT_LT(std::string(choice.result.message).size(), choice.text.size());
}

// Run by ctest once for each level, forced by the environment.
TEST(Levels, test_selected_follows_environment) {
  const char* forced = std::getenv("XLLM_KERNEL_SIMD_LEVEL");
  const SimdLevel& level = simd_level();
  if (forced == nullptr) {
    EXPECT_EQ(level.status, Status::kOk);
    return;
  }
  if (level.status == Status::kUnavailableLevel) {
    GTEST_SKIP() << "this machine has no level " << forced;
  }
  bool known = false;
  for (const simd::LevelInfo& info : simd::levels()) {
    known = known || std::string(info.name) == forced;
  }
  if (known) {
    EXPECT_EQ(level.status, Status::kOk) << level.message;
    EXPECT_STREQ(level.name, forced);
  } else {
    EXPECT_EQ(level.status, Status::kUnknownLevel);
  }
}

TEST(Levels, test_selected_environment_changed_later_only_failure_retried) {
  const bool decided = simd_level().status == Status::kOk;
  const std::string wanted = decided ? simd_level().name : "scalar";
  const char* forced = std::getenv("XLLM_KERNEL_SIMD_LEVEL");
  const std::string old = forced == nullptr ? "" : forced;
  setenv("XLLM_KERNEL_SIMD_LEVEL", "scalar", 1);
  EXPECT_EQ(simd_level().name, wanted);
  if (forced == nullptr) {
    unsetenv("XLLM_KERNEL_SIMD_LEVEL");
  } else {
    setenv("XLLM_KERNEL_SIMD_LEVEL", old.c_str(), 1);
  }
}

}  // namespace
}  // namespace xllm_kernel::test
