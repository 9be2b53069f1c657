// Every level's blocks against the scalar conversions, value by value, and
// their memory accesses against forbidden pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/vec_levels.h"
#include "simd/core/block.h"
#include "simd/core/cpu.h"
#include "simd/core/half.h"
#include "support/guarded.h"

namespace xllm_kernel::test {
namespace {

using simd::kLanes;
using Floats = std::array<float, kLanes>;

std::vector<LevelBlocks> every_level() {
  return {scalar_blocks(),
#if defined(__x86_64__)
          avx2_blocks(), avx512_blocks(), avx512bf16_blocks()
#elif defined(__aarch64__)
          neon_blocks()
#endif
  };
}

class Vec : public testing::TestWithParam<LevelBlocks> {
 protected:
  void SetUp() override {
    const simd::CpuFeatures features = simd::features_from(simd::read_cpuid());
    for (const simd::LevelInfo& info : simd::levels()) {
      if (info.level == GetParam().level && !info.available(features)) {
        GTEST_SKIP() << "this machine has no level " << info.name;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Levels, Vec, testing::ValuesIn(every_level()),
                         [](const auto& level) {
                           return std::string(level.param.name);
                         });

// Every conversion of a level below is tried because its name is in this list.
TEST(VecLevels, test_every_level_of_the_library_is_tried) {
  std::vector<simd::Level> tried;
  for (const LevelBlocks& blocks : every_level()) tried.push_back(blocks.level);
  EXPECT_EQ(tried.size(), simd::levels().size());
  for (const simd::LevelInfo& info : simd::levels()) {
    EXPECT_EQ(std::ranges::count(tried, info.level), 1) << info.name;
  }
}

using HalfBits = std::array<std::uint16_t, kLanes>;

void expect_rounded(const Floats& values, const HalfBits& narrow,
                    std::uint16_t (*scalar)(float)) {
  for (std::size_t n = 0; n < kLanes; ++n) {
    ASSERT_EQ(narrow[n], scalar(values[n]))
        << std::hex << std::bit_cast<std::uint32_t>(values[n]) << " at "
        << std::dec << n;
  }
}

// Each value visits every place, among others of every kind.
void expect_narrow(const BlockFormat& format, std::uint16_t (*scalar)(float)) {
  constexpr std::uint32_t kLowHalves[] = {0x0000, 0x0001, 0x0fff, 0x1000,
                                          0x1001, 0x1fff, 0x3000, 0x7fff,
                                          0x8000, 0x8001, 0xf000, 0xffff};
  for (std::uint32_t high = 0; high < 0x10000; high += kLanes) {
    for (std::uint32_t k = 0; k < kLanes; ++k) {
      const std::uint32_t low = kLowHalves[(high / kLanes + k) % 12];
      Floats values;
      for (std::uint32_t n = 0; n < kLanes; ++n) {
        const std::uint32_t other = kLowHalves[(low + n) % 12];
        values[(n + k) % kLanes] =
            std::bit_cast<float>((high + n) << 16 | (n == k ? low : other));
      }
      HalfBits narrow;
      format.narrow(values.data(), kLanes,
                    reinterpret_cast<std::byte*>(narrow.data()));
      expect_rounded(values, narrow, scalar);
      for (float& value : values) {
        if (std::isnan(value)) value = 1.0F;
      }
      format.narrow_numbers(values.data(),
                            reinterpret_cast<std::byte*>(narrow.data()));
      expect_rounded(values, narrow, scalar);
    }
  }
}

void expect_widen(const BlockFormat& format, float (*scalar)(std::uint16_t)) {
  for (std::uint32_t first = 0; first < 0x10000; ++first) {
    HalfBits bits;
    for (std::uint32_t n = 0; n < kLanes; ++n) {
      bits[n] = static_cast<std::uint16_t>(first * 61 + n * 1021);
    }
    bits[first % kLanes] = static_cast<std::uint16_t>(first);
    Floats wide;
    format.widen(reinterpret_cast<const std::byte*>(bits.data()), kLanes,
                 wide.data());
    for (std::size_t n = 0; n < kLanes; ++n) {
      const float expected = scalar(bits[n]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide[n])) << std::hex << bits[n];
      } else {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[n]),
                  std::bit_cast<std::uint32_t>(expected))
            << std::hex << bits[n];
      }
    }
  }
}

// Parts of 1 to 64 elements, their memory ending at a forbidden page and then
// starting at one.
void expect_parts_stay_inside(const BlockFormat& format) {
  Floats values;
  for (std::size_t k = 0; k < kLanes; ++k) {
    values[k] = static_cast<float>(k + 1);
  }
  for (const Flush flush : {Flush::kFront, Flush::kBack}) {
    for (std::int64_t count = 1; count <= kLanes; ++count) {
      const Guarded memory(static_cast<std::size_t>(count * format.size),
                           flush);
      format.narrow(values.data(), count, memory.data());
      ASSERT_TRUE(memory.intact()) << count;
      Floats read;
      format.widen(memory.data(), count, read.data());
      for (std::size_t k = 0; k < kLanes; ++k) {
        const bool inside = std::cmp_less(k, count);
        ASSERT_EQ(read[k], inside ? values[k] : 0.0F) << k << " of " << count;
        ASSERT_FALSE(std::signbit(read[k])) << k << " of " << count;
      }
    }
  }
}

// The tree that block.h defines, by its definition.
float tree(Floats values) {
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t k = 0; k < half; ++k) {
      values[k] += values[k + half];
    }
  }
  return values[0];
}

void expect_sum(const BlockFormat& format) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> magnitude(-60.0F, 60.0F);
  for (int trial = 0; trial < 2000; ++trial) {
    Floats values;
    for (float& value : values) value = std::exp2(magnitude(generator));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(format.sum(values.data())),
              std::bit_cast<std::uint32_t>(tree(values)));
  }
}

TEST_P(Vec, test_narrow_fp16_every_high_half_as_scalar) {
  expect_narrow(GetParam().fp16, simd::fp32_to_fp16);
}

TEST_P(Vec, test_narrow_bf16_every_high_half_as_scalar) {
  expect_narrow(GetParam().bf16, simd::fp32_to_bf16);
}

TEST_P(Vec, test_widen_fp16_every_pattern_as_scalar) {
  expect_widen(GetParam().fp16, simd::fp16_to_fp32);
}

TEST_P(Vec, test_widen_bf16_every_pattern_as_scalar) {
  expect_widen(GetParam().bf16, simd::bf16_to_fp32);
}

TEST_P(Vec, test_store_fp32_nan_canonical) {
  constexpr std::array<std::uint32_t, 8> kBits = {
      0x7f800001, 0xffffffff, 0x7fffffff, 0xff800001,
      0x7f800000, 0x80000000, 0x00000001, 0xff7fffff};
  Floats values;
  for (std::size_t k = 0; k < kLanes; ++k) {
    values[k] = std::bit_cast<float>(kBits[k % 8]);
  }
  std::array<std::uint32_t, kLanes> stored;
  GetParam().fp32.narrow(values.data(), kLanes,
                         reinterpret_cast<std::byte*>(stored.data()));
  for (std::size_t k = 0; k < kLanes; ++k) {
    EXPECT_EQ(stored[k], k % 8 < 4 ? 0x7fc00000U : kBits[k % 8]) << k;
  }
}

TEST_P(Vec, test_parts_stay_inside) {
  expect_parts_stay_inside(GetParam().fp32);
  expect_parts_stay_inside(GetParam().fp16);
  expect_parts_stay_inside(GetParam().bf16);
}

// A NaN of 16 bits, infinities and sums of them: what fused kernels round as
// numbers and look at afterwards.
void expect_nan_stays_nan(const BlockFormat& format,
                          float (*widen)(std::uint16_t)) {
  for (std::uint32_t high = 0; high < 0x10000; high += kLanes) {
    Floats values;
    for (std::uint32_t n = 0; n < kLanes; ++n) {
      values[n] = widen(static_cast<std::uint16_t>(high + n));
    }
    HalfBits narrow;
    format.narrow_numbers(values.data(),
                          reinterpret_cast<std::byte*>(narrow.data()));
    for (std::size_t n = 0; n < kLanes; ++n) {
      ASSERT_EQ(std::isnan(widen(narrow[n])), std::isnan(values[n]))
          << std::hex << high + n;
    }
  }
}

TEST_P(Vec, test_narrow_numbers_widened_nan_stays_nan) {
  // Payload and sign as they come, which the scalar widening makes canonical.
  expect_nan_stays_nan(GetParam().bf16, [](std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  });
  expect_nan_stays_nan(GetParam().fp16, simd::fp16_to_fp32);
}

void expect_arranged(const BlockFormat& format) {
  Floats values;
  for (std::size_t k = 0; k < kLanes; ++k) {
    values[k] = 1.0F + static_cast<float>(k) / 1024;
  }
  Floats arranged;
  format.arrange(values.data(), arranged.data());
  EXPECT_EQ(arranged, values);
}

TEST_P(Vec, test_arrange_fp32_in_the_order_of_each_format) {
  expect_arranged(GetParam().fp32);
  expect_arranged(GetParam().fp16);
  expect_arranged(GetParam().bf16);
}

TEST_P(Vec, test_sum_follows_the_tree) {
  expect_sum(GetParam().fp32);
  expect_sum(GetParam().fp16);
  expect_sum(GetParam().bf16);
}

}  // namespace
}  // namespace xllm_kernel::test
