// What the tests of every table of kernels need: levels of this machine, data,
// comparison by bits. For tests only; knows no operator.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "simd/core/levels.h"
#include "support/formats.h"
#include "support/tensor.h"

namespace xllm_kernel::test {

inline bool machine_has(simd::Level level) {
  for (const simd::LevelInfo& info : simd::levels()) {
    if (info.level == level) {
      return info.available(simd::features_from(simd::read_cpuid()));
    }
  }
  return false;
}

inline std::string level_name(simd::Level level) {
  for (const simd::LevelInfo& info : simd::levels()) {
    if (info.level == level) return info.name;
  }
  return "unnamed";
}

// Of an entry of any table of kernels.
template <class Variant>
std::string variant_name(const Variant& variant) {
  std::string name =
      level_name(variant.level) + "_" + format_of(variant.dtype).name;
  if (variant.weight != variant.dtype) {
    name += std::string("_by_") + format_of(variant.weight).name;
  }
  return name;
}

template <class Variants>
void expect_every_variant_once(const Variants& variants) {
  using enum DType;
  constexpr std::pair<DType, DType> kPairs[] = {{kFloat32, kFloat32},
                                                {kFloat16, kFloat16},
                                                {kBFloat16, kBFloat16},
                                                {kFloat16, kFloat32},
                                                {kBFloat16, kFloat32}};
  for (const simd::LevelInfo& info : simd::levels()) {
    for (const auto& [dtype, weight] : kPairs) {
      int count = 0;
      for (const auto& variant : variants) {
        count += variant.level == info.level && variant.dtype == dtype &&
                         variant.weight == weight
                     ? 1
                     : 0;
      }
      EXPECT_EQ(count, 1) << info.name << " " << format_of(dtype).name << " by "
                          << format_of(weight).name;
    }
  }
  EXPECT_EQ(variants.size(), simd::levels().size() * std::size(kPairs));
}

inline Tensor random_tensor(const Format& format, const Extents& extents,
                            unsigned seed, double scale = 1.0,
                            Flush flush = Flush::kBack) {
  Tensor tensor(format, extents, flush);
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0.0, scale);
  tensor.fill([&](auto, auto) { return normal(generator); });
  return tensor;
}

inline void expect_same_bits(const Tensor& a, const Tensor& b) {
  for (std::int64_t row = 0; row < a.rows(); ++row) {
    for (std::int64_t i = 0; i < a.width(); ++i) {
      ASSERT_EQ(a.bits(row, i), b.bits(row, i))
          << a.format().name << " row " << row << ", column " << i << " of "
          << a.width();
    }
  }
}

}  // namespace xllm_kernel::test
