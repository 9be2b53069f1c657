// The AVX2 conversions, loads and stores against the scalar ones, lane by lane.
#include "simd/core/vec_avx2.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "simd/core/cpu.h"
#include "simd/core/half.h"
#include "simd/core/levels.h"
#include "support/guarded.h"

XLLM_KERNEL_TARGET_AVX2_BEGIN

namespace xllm_kernel::test {
namespace {

// Plain functions at the border, so that no vector crosses a baseline frame.
template <class Format>
void narrow_eight(const float* from, std::byte* to) noexcept {
  Format::store(to, _mm256_loadu_ps(from));
}

template <class Format>
void widen_eight(const std::byte* from, float* to) noexcept {
  _mm256_storeu_ps(to, Format::load(from));
}

template <class Format>
void widen_part(const std::byte* from, std::int64_t count, float* to) noexcept {
  _mm256_storeu_ps(to, Format::load_part(from, count));
}

template <class Format>
void narrow_part(const float* from, std::int64_t count,
                 std::byte* to) noexcept {
  Format::store_part(to, _mm256_loadu_ps(from), count);
}

}  // namespace
}  // namespace xllm_kernel::test

XLLM_KERNEL_TARGET_END

namespace xllm_kernel::test {
namespace {

class VecAvx2 : public testing::Test {
 protected:
  void SetUp() override {
    const simd::CpuFeatures features = simd::features_from(simd::read_cpuid());
    if (!(features.avx2 && features.fma && features.f16c)) {
      GTEST_SKIP() << "this machine has no level avx2";
    }
  }
};

// Each value visits every lane, the others holding a NaN.
template <class Format, class Scalar>
void expect_narrow_as_scalar(Scalar scalar) {
  constexpr std::uint32_t kLowHalves[] = {0x0000, 0x0001, 0x0fff, 0x1000,
                                          0x1001, 0x1fff, 0x3000, 0x7fff,
                                          0x8000, 0x8001, 0xf000, 0xffff};
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : kLowHalves) {
      const auto value = std::bit_cast<float>(high << 16 | low);
      std::array<float, 8> lanes;
      lanes.fill(std::bit_cast<float>(0xffc12345U));
      lanes[high % 8] = value;
      std::array<std::uint16_t, 8> narrow;
      narrow_eight<Format>(lanes.data(),
                           reinterpret_cast<std::byte*>(narrow.data()));
      ASSERT_EQ(narrow[high % 8], scalar(value)) << std::hex << high << low;
      ASSERT_EQ(narrow[(high + 1) % 8], scalar(lanes[(high + 1) % 8]));
    }
  }
}

template <class Format, class Scalar>
void expect_widen_as_scalar(Scalar scalar) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    std::array<std::uint16_t, 8> lanes{};
    lanes[bits % 8] = static_cast<std::uint16_t>(bits);
    std::array<float, 8> wide;
    widen_eight<Format>(reinterpret_cast<const std::byte*>(lanes.data()),
                        wide.data());
    const float expected = scalar(static_cast<std::uint16_t>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide[bits % 8])) << std::hex << bits;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[bits % 8]),
                std::bit_cast<std::uint32_t>(expected))
          << std::hex << bits;
    }
  }
}

// Parts of 1 to 7 elements, their memory ending at a forbidden page and then
// starting at one.
template <class Format>
void expect_parts_stay_inside() {
  const std::array<float, 8> values = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const Flush flush : {Flush::kFront, Flush::kBack}) {
    for (std::int64_t count = 1; count < 8; ++count) {
      const Guarded memory(static_cast<std::size_t>(count * Format::kSize),
                           flush);
      narrow_part<Format>(values.data(), count, memory.data());
      std::array<float, 8> read;
      widen_part<Format>(memory.data(), count, read.data());
      for (std::int64_t k = 0; k < 8; ++k) {
        const auto at = static_cast<std::size_t>(k);
        EXPECT_EQ(read[at], k < count ? values[at] : 0.0F) << count;
      }
      EXPECT_TRUE(memory.intact());
    }
  }
}

TEST_F(VecAvx2, test_narrow_fp16_every_high_half_as_scalar) {
  expect_narrow_as_scalar<simd::Fp16>(simd::fp32_to_fp16);
}

TEST_F(VecAvx2, test_narrow_bf16_every_high_half_as_scalar) {
  expect_narrow_as_scalar<simd::Bf16>(simd::fp32_to_bf16);
}

TEST_F(VecAvx2, test_widen_fp16_every_pattern_as_scalar) {
  expect_widen_as_scalar<simd::Fp16>(simd::fp16_to_fp32);
}

TEST_F(VecAvx2, test_widen_bf16_every_pattern_as_scalar) {
  expect_widen_as_scalar<simd::Bf16>(simd::bf16_to_fp32);
}

TEST_F(VecAvx2, test_store_fp32_nan_canonical) {
  const std::array<std::uint32_t, 8> bits = {0x7f800001, 0xffffffff, 0x7fffffff,
                                             0xff800001, 0x7f800000, 0x80000000,
                                             0x00000001, 0xff7fffff};
  std::array<std::uint32_t, 8> stored;
  narrow_eight<simd::Fp32>(reinterpret_cast<const float*>(bits.data()),
                           reinterpret_cast<std::byte*>(stored.data()));
  for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(stored[k], 0x7fc00000U);
  for (std::size_t k = 4; k < 8; ++k) EXPECT_EQ(stored[k], bits[k]);
}

TEST_F(VecAvx2, test_parts_fp32_stay_inside) {
  expect_parts_stay_inside<simd::Fp32>();
}

TEST_F(VecAvx2, test_parts_fp16_stay_inside) {
  expect_parts_stay_inside<simd::Fp16>();
}

TEST_F(VecAvx2, test_parts_bf16_stay_inside) {
  expect_parts_stay_inside<simd::Bf16>();
}

}  // namespace
}  // namespace xllm_kernel::test
