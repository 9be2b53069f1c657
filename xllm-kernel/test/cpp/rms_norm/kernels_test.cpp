// Every rms_norm kernel of the table: values against fp64, memory untouched
// around them, special values, and the same bits at every level.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "rms_norm/support.h"

namespace xllm_kernel::test {
namespace {

using simd::RmsNormVariant;

constexpr std::int64_t kWidths[] = {1,   2,   3,    7,    9,    15,  17,
                                    31,  33,  63,   64,   65,   127, 129,
                                    513, 769, 1200, 3584, 4097, 8191};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

INSTANTIATE_TEST_SUITE_P(Table, EveryKernel,
                         testing::ValuesIn(simd::rms_norm_variants().begin(),
                                           simd::rms_norm_variants().end()),
                         kernel_name);

// Odd widths leave a tail on the right of every vector width; operands lie
// against forbidden pages, behind and in front in turn.
TEST_P(EveryKernel, test_widths_and_rows_close_and_inside) {
  unsigned seed = 1;
  for (const std::int64_t width : kWidths) {
    for (const std::int64_t rows : {1, 2, 7}) {
      for (const Flush flush : {Flush::kBack, Flush::kFront}) {
        const Tensor input =
            random_tensor(format(), {rows, width}, ++seed, 2.0, flush);
        const Tensor weight =
            random_tensor(weight_format(), {width}, ++seed, 1.0, flush);
        const std::vector<std::byte> input_before = input.snapshot();
        const std::vector<std::byte> weight_before = weight.snapshot();
        Tensor output(format(), {rows, width}, flush);
        Tensor expected(format(), {rows, width}, flush);

        run_kernel(GetParam(), output, input, weight, 1e-6);
        run_kernel(scalar_of(GetParam()), expected, input, weight, 1e-6);

        expect_close(output, input, weight, 1e-6);
        expect_same_bits(output, expected);
        EXPECT_TRUE(output.memory().intact());
        EXPECT_TRUE(input.memory().intact());
        EXPECT_EQ(input.snapshot(), input_before);
        EXPECT_EQ(weight.snapshot(), weight_before);
      }
    }
  }
}

// Rows on and off the 64 bytes that streaming stores ask for.
TEST_P(EveryKernel, test_streamed_same_bits_and_inside) {
  for (const std::int64_t width : {1, 64, 96, 100, 1024, 1056, 2080}) {
    for (const std::int64_t rows : {1, 3, 9}) {
      for (const Flush flush : {Flush::kBack, Flush::kFront}) {
        const Tensor input = random_tensor(format(), {rows, width}, 1);
        const Tensor weight = random_tensor(weight_format(), {width}, 2);
        Tensor output(format(), {rows, width}, flush);
        Tensor expected(format(), {rows, width});
        run_kernel(GetParam(), output, input, weight, 1e-6,
                   simd::Stores::kStreamed);
        run_kernel(GetParam(), expected, input, weight, 1e-6);
        expect_same_bits(output, expected);
        EXPECT_TRUE(output.memory().intact());
      }
    }
  }
}

// Where output and input begin within a page decides which way a row goes.
TEST_P(EveryKernel, test_output_anywhere_in_a_page_same_bits) {
  constexpr std::int64_t kPage = 4096;
  const Extents extents = {3, 1100};
  const Tensor source = random_tensor(format(), extents, 1);
  const Tensor weight = random_tensor(weight_format(), {1100}, 2);
  Tensor expected(format(), extents);
  run_kernel(GetParam(), expected, source, weight, 1e-6);
  // Input and output in one buffer, each with room for its rows.
  const std::int64_t room = 8 * kPage;
  const Tensor buffer(format(), {1, 2 * room / format().size});
  const std::vector<std::byte> rows = source.snapshot();
  const auto base = reinterpret_cast<std::uintptr_t>(buffer.memory().data());
  std::byte* const page = buffer.memory().data() + (kPage - base % kPage);
  for (const std::int64_t offset : {0, 4, 64, 1020, 1024, 2048, 4032, 4092}) {
    std::ranges::copy(rows, page);
    std::byte* const to = page + 5 * kPage + offset;
    TensorView input;
    MutableTensorView output;
    const Extents strides = {1100, 1};
    ASSERT_EQ(TensorView::make(page, extents, strides, format().dtype, &input),
              Status::kOk);
    ASSERT_EQ(
        MutableTensorView::make(to, extents, strides, format().dtype, &output),
        Status::kOk);
    run_on_views(GetParam(), output, input, weight, 1e-6);
    const std::vector<std::byte> wanted = expected.snapshot();
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), to)) << offset;
  }
}

TEST_P(EveryKernel, test_wide_rows_close) {
  for (const std::int64_t width : {16384, 32768, 65536, 131072}) {
    const Tensor input = random_tensor(format(), {1, width}, 5);
    const Tensor weight = random_tensor(weight_format(), {width}, 6);
    Tensor output(format(), {1, width});
    run_kernel(GetParam(), output, input, weight, 1e-5);
    expect_close(output, input, weight, 1e-5);
  }
}

// Any pattern of bits, NaNs with payload, infinities and subnormals included.
TEST_P(EveryKernel, test_arbitrary_bits_same_as_scalar) {
  std::mt19937 generator(11);
  for (const std::int64_t width : {1, 5, 8, 64, 71, 200}) {
    Tensor input(format(), {300, width});
    Tensor weight(weight_format(), {width});
    for (std::int64_t i = 0; i < width; ++i) {
      weight.set_bits(0, i, static_cast<std::uint32_t>(generator()));
      for (std::int64_t row = 0; row < input.rows(); ++row) {
        input.set_bits(row, i, static_cast<std::uint32_t>(generator()));
      }
    }
    for (const double eps : {0.0, 1e-30, 1e-6}) {
      Tensor output(format(), {300, width});
      Tensor expected(format(), {300, width});
      run_kernel(GetParam(), output, input, weight, eps);
      run_kernel(scalar_of(GetParam()), expected, input, weight, eps);
      expect_same_bits(output, expected);
    }
  }
}

// Every magnitude, down to rows of subnormals and up to the largest values,
// where squares leave fp32's range on both sides.
TEST_P(EveryKernel, test_magnitudes_same_as_scalar) {
  for (int exponent = format().least_exponent() - format().mantissa_bits;
       exponent <= format().bias(); ++exponent) {
    const Tensor input =
        random_tensor(format(), {2, 97}, 3, std::ldexp(1.0, exponent));
    const Tensor weight = random_tensor(weight_format(), {97}, 4);
    for (const double eps : {0.0, 1e-12}) {
      Tensor output(format(), {2, 97});
      Tensor expected(format(), {2, 97});
      run_kernel(GetParam(), output, input, weight, eps);
      run_kernel(scalar_of(GetParam()), expected, input, weight, eps);
      expect_same_bits(output, expected);
      // Eight standard deviations must stay below infinity, and the squares
      // inside fp32 (for fp32 and bf16).
      const bool squares_fit =
          exponent > -60 && exponent < std::min(60, format().bias() - 2);
      if (squares_fit) expect_close(output, input, weight, eps);
    }
  }
}

// Squares that overflow fp16, and so would a sum kept in it.
TEST_P(EveryKernel, test_large_half_values_no_overflow) {
  const Tensor weight =
      filled(weight_format(), {4096}, [](auto, auto) { return 1.0; });
  for (const double value : {300.0, 60000.0}) {
    const Tensor input = filled(format(), {2, 4096}, [&](auto, auto i) {
      return i % 2 == 0 ? value : -value;
    });
    Tensor output(format(), {2, 4096});
    run_kernel(GetParam(), output, input, weight, 1e-6);
    expect_close(output, input, weight, 1e-6);
    ASSERT_NEAR(output.get(1, 4094), 1.0, 1e-3);
    ASSERT_NEAR(output.get(1, 4095), -1.0, 1e-3);
  }
}

// An eps that were raised, or rounded to the dtype, would show here.
TEST_P(EveryKernel, test_small_eps_counts) {
  const Tensor weight =
      filled(weight_format(), {512}, [](auto, auto) { return 1.0; });
  const Tensor input = filled(format(), {1, 512}, [](auto, auto i) {
    return i % 2 == 0 ? 1e-3 : -1e-3;
  });
  Tensor with_large(format(), {1, 512});
  Tensor with_small(format(), {1, 512});
  run_kernel(GetParam(), with_large, input, weight, 1e-5);
  run_kernel(GetParam(), with_small, input, weight, 1e-6);
  expect_close(with_large, input, weight, 1e-5);
  expect_close(with_small, input, weight, 1e-6);
  EXPECT_NEAR(with_small.get(0, 0) / with_large.get(0, 0), 2.345, 0.02);
}

TEST_P(EveryKernel, test_one_spike_small_entries_keep_precision) {
  const Tensor weight =
      filled(weight_format(), {8192}, [](auto, auto) { return 1.0; });
  const Tensor input = filled(
      format(), {1, 8192}, [](auto, auto i) { return i == 0 ? 100.0 : 0.01; });
  Tensor output(format(), {1, 8192});
  run_kernel(GetParam(), output, input, weight, 1e-5);
  expect_close(output, input, weight, 1e-5);
}

TEST_P(EveryKernel, test_zero_row_exact_zero_or_nan_without_eps) {
  const Tensor weight = random_tensor(weight_format(), {70}, 9);
  const Tensor input = filled(
      format(), {2, 70}, [](auto, auto i) { return i % 2 == 0 ? 0.0 : -0.0; });
  Tensor output(format(), {2, 70});
  for (const double eps : {1e-12, 1e-6, 1e-45}) {
    run_kernel(GetParam(), output, input, weight, eps);
    for (std::int64_t i = 0; i < 70; ++i) ASSERT_EQ(output.get(1, i), 0.0);
  }
  for (const double eps : {0.0, 1e-60}) {
    run_kernel(GetParam(), output, input, weight, eps);
    for (std::int64_t i = 0; i < 70; ++i) {
      ASSERT_EQ(output.bits(1, i), format().nan());
    }
  }
}

TEST_P(EveryKernel, test_nan_fills_its_row_only_and_is_canonical) {
  const Tensor weight = random_tensor(weight_format(), {130}, 1);
  Tensor input = random_tensor(format(), {3, 130}, 2);
  Tensor clean(format(), {3, 130});
  run_kernel(GetParam(), clean, input, weight, 1e-6);
  for (const std::int64_t place : {0, 63, 64, 127, 129}) {
    const std::uint32_t before = input.bits(1, place);
    input.set_bits(1, place, format().sign_bit() | format().infinity() | 1U);
    Tensor output(format(), {3, 130});
    run_kernel(GetParam(), output, input, weight, 1e-6);
    for (std::int64_t i = 0; i < 130; ++i) {
      ASSERT_EQ(output.bits(1, i), format().nan()) << place;
      ASSERT_EQ(output.bits(0, i), clean.bits(0, i)) << place;
      ASSERT_EQ(output.bits(2, i), clean.bits(2, i)) << place;
    }
    input.set_bits(1, place, before);
  }
}

TEST_P(EveryKernel, test_infinity_own_entry_nan_others_zero) {
  const Tensor weight = random_tensor(weight_format(), {130}, 1);
  for (const double infinity : {kInfinity, -kInfinity}) {
    Tensor input = random_tensor(format(), {1, 130}, 2);
    input.set(0, 77, infinity);
    Tensor output(format(), {1, 130});
    run_kernel(GetParam(), output, input, weight, 1e-6);
    for (std::int64_t i = 0; i < 130; ++i) {
      if (i == 77) {
        ASSERT_EQ(output.bits(0, i), format().nan());
      } else {
        ASSERT_EQ(output.get(0, i), 0.0);
      }
    }
  }
}

// The largest values: their squares are over FLT_MAX, fp16's excepted.
TEST_P(EveryKernel, test_largest_values_zero_where_squares_overflow) {
  const double largest = format().largest();
  const Tensor weight =
      filled(weight_format(), {100}, [](auto, auto) { return 1.0; });
  const Tensor input =
      filled(format(), {1, 100}, [&](auto, auto) { return largest; });
  Tensor output(format(), {1, 100});
  run_kernel(GetParam(), output, input, weight, 1e-6);
  const double expected = format().dtype == DType::kFloat16 ? 1.0 : 0.0;
  for (std::int64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(output.get(0, i), expected);
  }
}

TEST_P(EveryKernel, test_subnormal_output_kept) {
  const double tiny =
      std::ldexp(3.0, format().least_exponent() - format().mantissa_bits);
  const Tensor weight =
      filled(weight_format(), {9}, [&](auto, auto) { return tiny; });
  const Tensor input = filled(format(), {1, 9}, [](auto, auto) { return 1.0; });
  Tensor output(format(), {1, 9});
  run_kernel(GetParam(), output, input, weight, 0.0);
  for (std::int64_t i = 0; i < 9; ++i) ASSERT_EQ(output.get(0, i), tiny);
}

TEST_P(EveryKernel, test_weight_nan_own_column_only) {
  Tensor weight = random_tensor(weight_format(), {20}, 1);
  weight.set(0, 13, kNan);
  const Tensor input = random_tensor(format(), {2, 20}, 2);
  Tensor output(format(), {2, 20});
  run_kernel(GetParam(), output, input, weight, 1e-6);
  for (std::int64_t i = 0; i < 20; ++i) {
    ASSERT_EQ(std::isnan(output.get(1, i)), i == 13);
  }
}

// Row r alone, and inside batches at every place, at every alignment.
TEST_P(EveryKernel, test_row_same_bits_in_any_batch_place_and_alignment) {
  for (const std::int64_t width : {63, 64, 200}) {
    const Tensor weight = random_tensor(weight_format(), {width}, 1);
    const Tensor row = random_tensor(format(), {1, width}, 2);
    Tensor alone(format(), {1, width});
    run_kernel(GetParam(), alone, row, weight, 1e-6);
    for (const std::int64_t batch : {2, 3, 17, 255, 256, 257}) {
      for (const std::int64_t place : {std::int64_t{0}, batch / 2, batch - 1}) {
        // Rows of width + 1 move the address by one element a row.
        Tensor input(format(), {batch, width}, {width + 1, 1});
        for (std::int64_t i = 0; i < width; ++i) {
          input.set_bits(place, i, row.bits(0, i));
        }
        Tensor output(format(), {batch, width}, {width + 3, 1});
        run_kernel(GetParam(), output, input, weight, 1e-6);
        for (std::int64_t i = 0; i < width; ++i) {
          ASSERT_EQ(output.bits(place, i), alone.bits(0, i)) << batch;
        }
      }
    }
  }
}

TEST_P(EveryKernel, test_strides_same_bits_as_dense_and_gaps_untouched) {
  const Extents extents = {3, 4, 37};
  const Tensor weight = random_tensor(weight_format(), {37}, 1);
  for (const Extents& strides :
       {Extents{148, 37, 1}, Extents{1000, 100, 1}, Extents{37, 111, 1},
        Extents{0, 37, 1}, Extents{37, 0, 1}, Extents{0, 0, 1}}) {
    Tensor input(format(), extents, strides);
    std::mt19937 generator(7);
    std::normal_distribution<double> normal;
    input.fill([&](auto, auto) { return normal(generator); });
    Tensor dense(format(), extents);
    for (std::int64_t row = 0; row < 12; ++row) {
      for (std::int64_t i = 0; i < 37; ++i) {
        dense.set_bits(row, i, input.bits(row, i));
      }
    }
    Tensor from_dense(format(), extents);
    Tensor from_view(format(), extents, {600, 50, 1});
    run_kernel(GetParam(), from_dense, dense, weight, 1e-6);
    run_kernel(GetParam(), from_view, input, weight, 1e-6);
    expect_same_bits(from_dense, from_view);
    const std::vector<std::byte> bytes = from_view.snapshot();
    for (int at = 37 * format().size; at < 50 * format().size; ++at) {
      ASSERT_EQ(bytes[static_cast<std::size_t>(at)],
                std::byte{Guarded::kFiller});
    }
  }
}

TEST(Table, test_table_every_level_and_dtypes_once) {
  expect_every_variant_once(simd::rms_norm_variants());
}

}  // namespace
}  // namespace xllm_kernel::test
