// What simulated `norm` kernels write, against arithmetic in double.
// Runs them on host memory, without streams.
#include "launchers/kernels/norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <type_traits>
#include <variant>
#include <vector>

#include "test/launchers/block_builder.h"
#include "test/narrow_reference.h"

namespace ascend_sim {
namespace {

using testing::Bfloat16;
using testing::BlockBuilder;
using testing::Float16;
using testing::kHalfUlp;
using testing::value_of;

// In fp32 a tree over 8192 squares has 13 levels, each off by 2^-24 at most;
// the root halves that; scaling, root, division, weight and bias add a few.
constexpr double kFp32Error = 1.0 / (1 << 20);

template <typename Narrow>
std::variant<Plan, BlockError> plan_for(const BlockBuilder& block,
                                        std::uint32_t cores) {
  return std::is_same_v<Narrow, Bfloat16>
             ? plan_norm_bfloat16(block.bytes(), cores)
             : plan_norm_float16(block.bytes(), cores);
}

std::byte* on_host(Address address) {
  return reinterpret_cast<std::byte*>(address);
}

struct Case {
  std::uint32_t rows = 3;
  std::uint32_t width = 128;
  std::uint32_t norms = 1;  // a row
  NormKind kind = NormKind::kRms;
  std::uint32_t cores = 2;
  float eps = 1e-5F;
  std::uint32_t in_step = 0;  // 0: rows are dense
  std::uint32_t out_step = 0;
  std::uint32_t in_start = 0;
  std::uint32_t out_start = 0;
  bool weight = true;
  bool bias = false;
  bool add = false;
  bool variance = false;
  bool use_norm = true;
  bool out_fp32 = false;
};

template <typename Narrow>
class NormRun final {
 public:
  explicit NormRun(const Case& what) : case_(what) {
    row_ = what.width * what.norms;
    in_step_ = what.in_step != 0 ? what.in_step : row_;
    out_row_ = what.use_norm ? row_ : 1;
    out_step_ = what.out_step != 0 ? what.out_step : out_row_;
    input_ = random(what.in_start + std::size_t{what.rows} * in_step_ + 7, 3);
    add_ = random(input_.size(), 2);
    weight_ = random(what.width, 1);
    bias_ = random(what.width, 1);
    variance_.assign(what.rows, 0);
    for (std::uint32_t row = 0; row < what.rows; ++row) {
      variance_[row] = 2.5F + static_cast<float>(row);
    }
    out_elements_ = what.out_start + std::size_t{what.rows} * out_step_ + 9;
    out_.assign(out_elements_ * sizeof(float), kGuard);
    add_before_ = add_;
  }

  void run() {
    BlockBuilder bytes;
    const auto given = [](bool is, const void* data) {
      return is ? data : nullptr;
    };
    bytes.pointer(0x00, input_.data())
        .pointer(0x08, given(case_.add, add_.data()))
        .pointer(0x10, given(case_.weight, weight_.data()))
        .pointer(0x18, given(case_.bias, bias_.data()))
        .pointer(0x20, out_.data())
        .put(0x28, case_.rows)
        .put(0x2c, case_.width)
        .put(0x30, case_.eps)
        .put(0x34, static_cast<std::int32_t>(case_.kind))
        .put(0x38, case_.norms)
        .put(0x3c, in_step_)
        .put(0x40, out_step_)
        .put(0x44, case_.in_start)
        .put(0x48, case_.out_start)
        .put(0x4c, static_cast<std::uint8_t>(case_.use_norm))
        .pointer(0x50, given(case_.variance, variance_.data()))
        .put(0x58, kTpSize)
        .put(0x5c, static_cast<std::uint8_t>(case_.out_fp32));
    auto made = plan_for<Narrow>(bytes, case_.cores);
    ASSERT_TRUE(std::holds_alternative<Plan>(made))
        << std::get<BlockError>(made).field << " "
        << std::get<BlockError>(made).text;
    std::get<Plan>(made).run(on_host);
  }

  // Every element that the kernel must write, and no other.
  void check() const {
    std::vector<bool> written(out_.size(), false);
    for (std::uint32_t row = 0; row < case_.rows; ++row) {
      check_row(row, written);
    }
    for (std::size_t i = 0; i < out_.size(); ++i) {
      if (!written[i]) {
        ASSERT_EQ(out_[i], kGuard) << "byte " << i << " was written";
      }
    }
  }

 private:
  static constexpr std::byte kGuard{0x5a};
  static constexpr std::uint32_t kTpSize = 4;

  std::vector<Narrow> random(std::size_t elements, float spread) {
    std::normal_distribution<float> normal(0.5F, spread);
    std::vector<Narrow> values(elements);
    for (Narrow& value : values) {
      value.bits = Narrow::narrow(normal(engine_));
    }
    return values;
  }

  [[nodiscard]] std::vector<double> wanted_input(std::uint32_t row,
                                                 std::uint32_t norm) const {
    const std::size_t first = case_.in_start + std::size_t{row} * in_step_ +
                              std::size_t{norm} * case_.width;
    std::vector<double> values(case_.width);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = value_of(input_[first + i]);
      if (case_.add) {
        values[i] += value_of(add_before_[first + i]);
        EXPECT_NEAR(value_of(add_[first + i]), values[i],
                    (kHalfUlp<Narrow> + kFp32Error) * std::abs(values[i]))
            << "row " << row << " element " << i << " of addInOut";
      }
    }
    return values;
  }

  void check_row(std::uint32_t row, std::vector<bool>& written) const {
    const std::size_t out_first =
        case_.out_start + std::size_t{row} * out_step_;
    for (std::uint32_t norm = 0; norm < case_.norms; ++norm) {
      std::vector<double> x = wanted_input(row, norm);
      double mean = 0;
      for (const double value : x) {
        mean += value / case_.width;
      }
      const double shift = case_.kind == NormKind::kLayer ? mean : 0;
      double variance = 0;
      for (double& value : x) {
        value -= shift;
        variance += value * value;
      }
      variance /= case_.kind == NormKind::kL2 ? 1 : case_.width;
      if (case_.variance) {
        variance = variance_[row] / kTpSize;
      }
      if (!case_.use_norm) {
        compare(out_first, variance, variance, written);
        return;
      }
      const double root = std::sqrt(variance + case_.eps);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double weight = case_.weight ? value_of(weight_[i]) : 1;
        const double bias = case_.bias ? value_of(bias_[i]) : 0;
        const double size =
            std::abs(weight) * (std::abs(x[i]) + 2 * std::abs(shift)) / root +
            std::abs(bias);
        compare(out_first + std::size_t{norm} * case_.width + i,
                x[i] / root * weight + bias, size, written);
      }
    }
  }

  // `size` bounds the terms that were added up to the value.
  void compare(std::size_t element, double want, double size,
               std::vector<bool>& written) const {
    const bool wide = case_.out_fp32 || !case_.use_norm;
    const std::size_t bytes = wide ? sizeof(float) : sizeof(Narrow);
    double got = 0;
    double tolerance = kFp32Error * size;
    if (wide) {
      float value = 0;
      std::memcpy(&value, &out_[element * bytes], bytes);
      got = value;
    } else {
      Narrow value;
      std::memcpy(&value, &out_[element * bytes], bytes);
      got = value_of(value);
      // One rounding; the smallest float16 numbers have a fixed spacing.
      tolerance += kHalfUlp<Narrow> * (std::abs(want) + tolerance) +
                   (std::is_same_v<Narrow, Float16> ? std::ldexp(1, -25) : 0);
    }
    ASSERT_NEAR(got, want, tolerance) << "element " << element;
    std::fill_n(written.begin() + static_cast<std::ptrdiff_t>(element * bytes),
                bytes, true);
  }

  Case case_;
  std::mt19937 engine_{5309};
  std::uint32_t row_ = 0;
  std::uint32_t in_step_ = 0;
  std::uint32_t out_row_ = 0;
  std::uint32_t out_step_ = 0;
  std::size_t out_elements_ = 0;
  std::vector<Narrow> input_;
  std::vector<Narrow> add_;
  std::vector<Narrow> add_before_;
  std::vector<Narrow> weight_;
  std::vector<Narrow> bias_;
  std::vector<float> variance_;
  std::vector<std::byte> out_;
};

template <typename Narrow>
class NormTest : public ::testing::Test {
 protected:
  static void expect_right(const Case& what) {
    NormRun<Narrow> run(what);
    run.run();
    run.check();
  }
};
using NarrowTypes = ::testing::Types<Bfloat16, Float16>;
TYPED_TEST_SUITE(NormTest, NarrowTypes);

constexpr NormKind kKinds[] = {NormKind::kRms, NormKind::kLayer, NormKind::kL2};

TYPED_TEST(NormTest, EveryKind_IsRight) {
  for (const NormKind kind : kKinds) {
    for (const std::uint32_t width : {64U, 128U, 192U, 512U, 6144U, 8192U}) {
      this->expect_right({.width = width, .kind = kind});
    }
  }
}

TYPED_TEST(NormTest, LargeEps_IsUnderTheRoot) {
  for (const NormKind kind : kKinds) {
    this->expect_right({.kind = kind, .eps = 3});
  }
}

TYPED_TEST(NormTest, RowsAndCores_AnyRatio_CoverAllRows) {
  for (const std::uint32_t rows : {1U, 2U, 7U, 40U, 41U, 100U}) {
    for (const std::uint32_t cores : {1U, 2U, 3U, 40U, 65535U}) {
      this->expect_right({.rows = rows, .width = 64, .cores = cores});
    }
  }
}

TYPED_TEST(NormTest, OptionalOperands_AreUsedWhenGiven) {
  for (const NormKind kind : kKinds) {
    for (int bits = 0; bits < 16; ++bits) {
      this->expect_right({.kind = kind,
                          .weight = (bits & 1) != 0,
                          .bias = (bits & 2) != 0,
                          .add = (bits & 4) != 0,
                          .variance = (bits & 8) != 0});
    }
  }
}

TYPED_TEST(NormTest, StepsAndStarts_PlaceTheRows) {
  for (const bool out_fp32 : {false, true}) {
    this->expect_right({.rows = 5,
                        .in_step = 200,
                        .out_step = 300,
                        .in_start = 11,
                        .out_start = 13,
                        .bias = true,
                        .add = true,
                        .out_fp32 = out_fp32});
  }
}

TYPED_TEST(NormTest, NormsSideBySide_ShareTheWeight) {
  for (const NormKind kind : kKinds) {
    this->expect_right({.width = 64,
                        .norms = 5,
                        .kind = kind,
                        .in_step = 400,
                        .out_step = 350,
                        .bias = true});
  }
}

TYPED_TEST(NormTest, VarianceAlone_IsGivenInFp32) {
  for (const NormKind kind : kKinds) {
    for (const bool out_fp32 : {false, true}) {
      this->expect_right({.kind = kind,
                          .out_step = 3,
                          .out_start = 2,
                          .weight = false,
                          .use_norm = false,
                          .out_fp32 = out_fp32});
    }
  }
}

TYPED_TEST(NormTest, Fp32Output_IsNotRounded) {
  this->expect_right({.width = 512, .bias = true, .out_fp32 = true});
}

// Kernels normalise in place as long as input and output rows coincide.
TYPED_TEST(NormTest, InPlace_IsRight) {
  std::vector<TypeParam> data(4 * 64);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i].bits = TypeParam::narrow(static_cast<float>(i % 9) - 3);
  }
  const std::vector<TypeParam> before = data;
  BlockBuilder bytes;
  bytes.pointer(0x00, data.data())
      .pointer(0x10, nullptr)
      .pointer(0x20, data.data())
      .shape(4, 64);
  auto made = plan_for<TypeParam>(bytes, 3);
  std::get<Plan>(made).run(on_host);
  for (std::size_t row = 0; row < 4; ++row) {
    double square = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      square += std::pow(value_of(before[row * 64 + i]), 2) / 64;
    }
    for (std::size_t i = row * 64; i < row * 64 + 64; ++i) {
      const double want = value_of(before[i]) / std::sqrt(square + 1e-5);
      EXPECT_NEAR(value_of(data[i]), want,
                  (kHalfUlp<TypeParam> + kFp32Error) * std::abs(want));
    }
  }
}

TYPED_TEST(NormTest, NotANumber_StaysInItsRow) {
  std::vector<TypeParam> data(3 * 64);
  for (TypeParam& value : data) {
    value.bits = TypeParam::narrow(1);
  }
  data[64 + 5].bits = TypeParam::narrow(std::nanf(""));
  std::vector<TypeParam> out(data.size());
  BlockBuilder bytes;
  bytes.pointer(0x00, data.data())
      .pointer(0x10, nullptr)
      .pointer(0x20, out.data())
      .shape(3, 64);
  auto made = plan_for<TypeParam>(bytes, 1);
  std::get<Plan>(made).run(on_host);
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(std::isnan(value_of(out[i])), i / 64 == 1) << i;
  }
}

TEST(PlanNorm, SenselessBlock_GivesItsError) {
  BlockBuilder bytes;
  bytes.put<std::uint32_t>(0x2c, 100);
  for (const auto plan : {&plan_norm_bfloat16, &plan_norm_float16}) {
    const auto made = plan(bytes.bytes(), 1);
    ASSERT_TRUE(std::holds_alternative<BlockError>(made));
    EXPECT_EQ(std::get<BlockError>(made).field, "norm_dim");
  }
}

TEST(PlanNorm, NoRows_TouchesNothing) {
  BlockBuilder bytes;
  bytes.put<std::uint32_t>(0x28, 0);
  auto made = plan_norm_bfloat16(bytes.bytes(), 1);
  std::get<Plan>(made).run([](Address) -> std::byte* {
    ADD_FAILURE() << "memory was asked for";
    return nullptr;
  });
}

}  // namespace
}  // namespace ascend_sim
