// Every fused_add_rms_norm kernel of the table: sum and norm by definition and
// bit for bit at every level, memory untouched around them, special values.
#include <gtest/gtest.h>

#include <limits>

#include "fused_add_rms_norm/support.h"

namespace xllm_kernel::test {
namespace {

constexpr std::int64_t kWidths[] = {1,   2,   3,    7,    9,    15,  17,
                                    31,  33,  63,   64,   65,   127, 129,
                                    513, 769, 1200, 3584, 4097, 8191};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The norm alone, at the same level.
const simd::RmsNormVariant& norm_of(const FusedAddRmsNormVariant& variant) {
  for (const auto& other : simd::rms_norm_variants()) {
    if (other.level == variant.level && other.dtype == variant.dtype &&
        other.weight == variant.weight) {
      return other;
    }
  }
  std::abort();
}

INSTANTIATE_TEST_SUITE_P(
    Table, EveryFusedKernel,
    testing::ValuesIn(simd::fused_add_rms_norm_variants().begin(),
                      simd::fused_add_rms_norm_variants().end()),
    fused_kernel_name);

// Odd widths leave a tail on the right of every vector width; operands lie
// against forbidden pages, behind and in front in turn.
TEST_P(EveryFusedKernel, test_widths_and_rows_defined_and_inside) {
  unsigned seed = 1;
  for (const std::int64_t width : kWidths) {
    for (const std::int64_t rows : {1, 2, 7}) {
      for (const Flush flush : {Flush::kBack, Flush::kFront}) {
        const Extents extents = {rows, width};
        const Tensor input =
            random_tensor(format(), extents, ++seed, 2.0, flush);
        const Tensor residual =
            random_tensor(format(), extents, ++seed, 3.0, flush);
        const Tensor weight =
            random_tensor(weight_format(), {width}, ++seed, 1.0, flush);
        const std::vector<std::byte> before[] = {
            input.snapshot(), residual.snapshot(), weight.snapshot()};
        Tensor output(format(), extents, flush);
        Tensor sum(format(), extents, flush);
        Tensor scalar_output(format(), extents, flush);
        Tensor scalar_sum(format(), extents, flush);
        Tensor norm(format(), extents, flush);

        run_fused(GetParam(), output, sum, input, residual, weight, 1e-6);
        run_fused(scalar_of(GetParam()), scalar_output, scalar_sum, input,
                  residual, weight, 1e-6);
        run_kernel(norm_of(GetParam()), norm, sum, weight, 1e-6);

        expect_same_bits(sum, defined_sum(input, residual));
        expect_close(output, sum, weight, 1e-6);
        expect_same_bits(output, norm);
        expect_same_bits(output, scalar_output);
        expect_same_bits(sum, scalar_sum);
        for (const Tensor* tensor : {&input, &residual, &weight}) {
          EXPECT_TRUE(tensor->memory().intact());
        }
        EXPECT_TRUE(output.memory().intact());
        EXPECT_TRUE(sum.memory().intact());
        EXPECT_EQ(input.snapshot(), before[0]);
        EXPECT_EQ(residual.snapshot(), before[1]);
        EXPECT_EQ(weight.snapshot(), before[2]);
      }
    }
  }
}

// Any pattern of bits, NaNs with payload, infinities and subnormals included.
TEST_P(EveryFusedKernel, test_arbitrary_bits_same_as_scalar_and_as_norm) {
  std::mt19937 generator(13);
  for (const std::int64_t width : {1, 5, 64, 71, 200}) {
    const Extents extents = {200, width};
    Tensor input(format(), extents);
    Tensor residual(format(), extents);
    const Tensor weight = random_tensor(weight_format(), {width}, 3);
    for (std::int64_t row = 0; row < input.rows(); ++row) {
      for (std::int64_t i = 0; i < width; ++i) {
        input.set_bits(row, i, static_cast<std::uint32_t>(generator()));
        residual.set_bits(row, i, static_cast<std::uint32_t>(generator()));
      }
    }
    for (const double eps : {0.0, 1e-6}) {
      Tensor output(format(), extents);
      Tensor sum(format(), extents);
      Tensor scalar_output(format(), extents);
      Tensor scalar_sum(format(), extents);
      Tensor norm(format(), extents);
      run_fused(GetParam(), output, sum, input, residual, weight, eps);
      run_fused(scalar_of(GetParam()), scalar_output, scalar_sum, input,
                residual, weight, eps);
      run_kernel(norm_of(GetParam()), norm, sum, weight, eps);
      expect_same_bits(output, scalar_output);
      expect_same_bits(sum, scalar_sum);
      expect_same_bits(output, norm);
      expect_same_bits(sum, defined_sum(input, residual));
    }
  }
}

TEST_P(EveryFusedKernel, test_residual_zero_as_rms_norm) {
  const Tensor input = random_tensor(format(), {5, 777}, 1);
  const Tensor residual =
      filled(format(), {5, 777}, [](auto, auto) { return 0.0; });
  const Tensor weight = random_tensor(weight_format(), {777}, 2);
  Tensor output(format(), {5, 777});
  Tensor sum(format(), {5, 777});
  Tensor norm(format(), {5, 777});
  run_fused(GetParam(), output, sum, input, residual, weight, 1e-6);
  run_kernel(norm_of(GetParam()), norm, input, weight, 1e-6);
  expect_same_bits(sum, input);
  expect_same_bits(output, norm);
}

// A sum that the dtype cannot hold: 16-bit norms must see it rounded.
TEST_P(EveryFusedKernel, test_norm_reads_the_rounded_sum) {
  const double tiny = std::ldexp(1.0, -format().mantissa_bits - 2);
  const Tensor input =
      filled(format(), {1, 64}, [](auto, auto) { return 1.0; });
  const Tensor residual = filled(
      format(), {1, 64}, [&](auto, auto i) { return i % 2 == 0 ? tiny : 1.0; });
  const Tensor weight =
      filled(weight_format(), {64}, [](auto, auto) { return 1.0; });
  Tensor output(format(), {1, 64});
  Tensor sum(format(), {1, 64});
  run_fused(GetParam(), output, sum, input, residual, weight, 0.0);
  for (std::int64_t i = 0; i < 64; ++i) {
    ASSERT_EQ(sum.get(0, i), i % 2 == 0 ? 1.0 : 2.0);
  }
  expect_close(output, sum, weight, 0.0);
}

TEST_P(EveryFusedKernel, test_exact_aliases_same_bits_as_fresh) {
  for (const std::int64_t width : {1, 63, 64, 129, 777}) {
    const Extents extents = {7, width};
    const Tensor input = random_tensor(format(), extents, 1);
    const Tensor residual = random_tensor(format(), extents, 2);
    const Tensor weight = random_tensor(weight_format(), {width}, 3);
    Tensor output(format(), extents);
    Tensor sum(format(), extents);
    run_fused(GetParam(), output, sum, input, residual, weight, 1e-6);
    Tensor in_place = random_tensor(format(), extents, 1);
    Tensor carried = random_tensor(format(), extents, 2);
    run_fused(GetParam(), in_place, carried, in_place, carried, weight, 1e-6);
    expect_same_bits(in_place, output);
    expect_same_bits(carried, sum);
    EXPECT_TRUE(in_place.memory().intact());
    EXPECT_TRUE(carried.memory().intact());
  }
}

TEST_P(EveryFusedKernel, test_nan_fills_its_row_only_and_is_canonical) {
  const Tensor weight = random_tensor(weight_format(), {130}, 1);
  for (const bool in_residual : {false, true}) {
    Tensor input = random_tensor(format(), {3, 130}, 2);
    Tensor residual = random_tensor(format(), {3, 130}, 3);
    Tensor clean(format(), {3, 130});
    Tensor sum(format(), {3, 130});
    run_fused(GetParam(), clean, sum, input, residual, weight, 1e-6);
    (in_residual ? residual : input)
        .set_bits(1, 65, format().sign_bit() | format().infinity() | 1U);
    Tensor output(format(), {3, 130});
    run_fused(GetParam(), output, sum, input, residual, weight, 1e-6);
    for (std::int64_t i = 0; i < 130; ++i) {
      ASSERT_EQ(output.bits(1, i), format().nan());
      ASSERT_EQ(output.bits(0, i), clean.bits(0, i));
      ASSERT_EQ(output.bits(2, i), clean.bits(2, i));
      ASSERT_EQ(std::isnan(sum.get(1, i)), i == 65);
    }
    EXPECT_EQ(sum.bits(1, 65), format().nan());
  }
}

// Infinity, opposite infinities, and a sum past the largest value.
TEST_P(EveryFusedKernel, test_infinite_sums_own_entry_nan_others_zero) {
  const Tensor weight = random_tensor(weight_format(), {130}, 1);
  const double largest = format().largest();
  for (const auto& [a, b] : {std::pair{kInfinity, 1.0},
                             {1.0, -kInfinity},
                             {largest, largest},
                             {-largest, -largest}}) {
    Tensor input = random_tensor(format(), {1, 130}, 2);
    Tensor residual = random_tensor(format(), {1, 130}, 3);
    input.set(0, 77, a);
    residual.set(0, 77, b);
    Tensor output(format(), {1, 130});
    Tensor sum(format(), {1, 130});
    run_fused(GetParam(), output, sum, input, residual, weight, 1e-6);
    EXPECT_EQ(sum.get(0, 77), a + b > 0 ? kInfinity : -kInfinity);
    for (std::int64_t i = 0; i < 130; ++i) {
      if (i == 77) {
        ASSERT_EQ(output.bits(0, i), format().nan());
      } else {
        ASSERT_EQ(output.get(0, i), 0.0);
      }
    }
  }
  Tensor input = random_tensor(format(), {1, 9}, 2);
  Tensor residual = random_tensor(format(), {1, 9}, 3);
  input.set(0, 4, kInfinity);
  residual.set(0, 4, -kInfinity);
  Tensor output(format(), {1, 9});
  Tensor sum(format(), {1, 9});
  run_fused(GetParam(), output, sum, input, residual,
            random_tensor(weight_format(), {9}, 1), 1e-6);
  EXPECT_EQ(sum.bits(0, 4), format().nan());
  for (std::int64_t i = 0; i < 9; ++i) {
    ASSERT_EQ(output.bits(0, i), format().nan());
  }
}

TEST_P(EveryFusedKernel, test_row_same_bits_in_any_batch_place_and_alignment) {
  for (const std::int64_t width : {63, 64, 200}) {
    const Tensor weight = random_tensor(weight_format(), {width}, 1);
    const Tensor row = random_tensor(format(), {1, width}, 2);
    const Tensor added = random_tensor(format(), {1, width}, 3);
    Tensor alone(format(), {1, width});
    Tensor alone_sum(format(), {1, width});
    run_fused(GetParam(), alone, alone_sum, row, added, weight, 1e-6);
    for (const std::int64_t batch : {2, 17, 257}) {
      // Rows of width + 1 and + 3 move the address by an element a row.
      Tensor input(format(), {batch, width}, {width + 1, 1});
      Tensor residual(format(), {batch, width}, {width + 3, 1});
      for (std::int64_t place = 0; place < batch; ++place) {
        for (std::int64_t i = 0; i < width; ++i) {
          input.set_bits(place, i, row.bits(0, i));
          residual.set_bits(place, i, added.bits(0, i));
        }
      }
      Tensor output(format(), {batch, width}, {width + 5, 1});
      Tensor sum(format(), {batch, width}, {width + 7, 1});
      run_fused(GetParam(), output, sum, input, residual, weight, 1e-6);
      for (std::int64_t place = 0; place < batch; ++place) {
        for (std::int64_t i = 0; i < width; ++i) {
          ASSERT_EQ(output.bits(place, i), alone.bits(0, i)) << batch;
          ASSERT_EQ(sum.bits(place, i), alone_sum.bits(0, i)) << batch;
        }
      }
      const std::vector<std::byte> bytes = output.snapshot();
      for (std::int64_t at = width * format().size;
           at < (width + 5) * format().size; ++at) {
        ASSERT_EQ(bytes[static_cast<std::size_t>(at)],
                  std::byte{Guarded::kFiller});
      }
    }
  }
}

TEST(FusedTable, test_table_every_level_and_dtypes_once) {
  expect_every_variant_once(simd::fused_add_rms_norm_variants());
}

}  // namespace
}  // namespace xllm_kernel::test
