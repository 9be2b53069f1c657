// Checked views: what they accept and refuse, and the rows walked over them.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "simd/core/rows.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::test {
namespace {

using Numbers = std::vector<std::int64_t>;
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

class View : public testing::Test {
 protected:
  Status make(const Numbers& extents, const Numbers& strides,
              DType dtype = DType::kFloat32) {
    return TensorView::make(memory_, extents, strides, dtype, &view_);
  }

  alignas(8) std::byte memory_[4096] = {};
  TensorView view_;
};

TEST_F(View, test_make_dense_spans_its_bytes) {
  const Numbers extents = {3, 5};
  const Numbers strides = {5, 1};
  ASSERT_EQ(make(extents, strides), Status::kOk);
  EXPECT_EQ(view_.elements(), 15);
  EXPECT_EQ(view_.begin_byte(), memory_);
  EXPECT_EQ(view_.end_byte(), memory_ + 60);
}

TEST_F(View, test_make_no_dimension_one_element) {
  ASSERT_EQ(make({}, {}), Status::kOk);
  EXPECT_EQ(view_.elements(), 1);
  EXPECT_EQ(view_.end_byte() - view_.begin_byte(), 4);
}

TEST_F(View, test_make_stride_zero_spans_one_row) {
  ASSERT_EQ(make({1000, 5}, {0, 1}), Status::kOk);
  EXPECT_EQ(view_.elements(), 5000);
  EXPECT_EQ(view_.end_byte(), memory_ + 20);
}

TEST_F(View, test_make_stride_negative_spans_below_base) {
  const Numbers extents = {3, 2};
  const Numbers strides = {-4, 1};
  ASSERT_EQ(
      TensorView::make(memory_ + 64, extents, strides, DType::kFloat32, &view_),
      Status::kOk);
  EXPECT_EQ(view_.begin_byte(), memory_ + 32);
  EXPECT_EQ(view_.end_byte(), memory_ + 72);
}

TEST_F(View, test_make_stride_of_extent_one_ignored) {
  EXPECT_EQ(make({1, 4}, {kHuge, 1}), Status::kOk);
  EXPECT_EQ(make({1, 4}, {kLeast, 1}), Status::kOk);
}

TEST_F(View, test_make_empty_needs_no_memory) {
  const Numbers extents = {0, 4};
  const Numbers strides = {4, 1};
  ASSERT_EQ(
      TensorView::make(nullptr, extents, strides, DType::kFloat16, &view_),
      Status::kOk);
  EXPECT_EQ(view_.elements(), 0);
  EXPECT_EQ(view_.begin_byte(), view_.end_byte());
}

TEST_F(View, test_make_null_base_refused) {
  const Numbers extents = {2};
  const Numbers strides = {1};
  EXPECT_EQ(
      TensorView::make(nullptr, extents, strides, DType::kFloat32, &view_),
      Status::kNullPointer);
}

TEST_F(View, test_make_lengths_differ_refused) {
  EXPECT_EQ(make({2, 2}, {1}), Status::kRankMismatch);
}

TEST_F(View, test_make_negative_extent_refused) {
  EXPECT_EQ(make({2, -1}, {1, 1}), Status::kNegativeExtent);
  EXPECT_EQ(make({0, -1}, {1, 1}), Status::kNegativeExtent);
}

TEST_F(View, test_make_overflow_refused) {
  EXPECT_EQ(make({kHuge, kHuge}, {0, 0}), Status::kExtentOverflow);
  EXPECT_EQ(make({1L << 32, 1L << 32}, {0, 0}), Status::kExtentOverflow);
  EXPECT_EQ(make({2, 2}, {kHuge, 1}), Status::kExtentOverflow);
  EXPECT_EQ(make({3, 2}, {kLeast / 2, 1}), Status::kExtentOverflow);
  EXPECT_EQ(make({2, 2, 2}, {1L << 60, 1L << 60, 1}), Status::kExtentOverflow);
  // Products that would wrap round to 0.
  EXPECT_EQ(make({5, 2}, {1L << 62, 1}), Status::kExtentOverflow);
  EXPECT_EQ(make({2, 2}, {1L << 62, 1}), Status::kExtentOverflow);
  // Fits 64 bits, but not the addresses from here on.
  EXPECT_EQ(make({2, 2}, {-(1L << 58), 1}), Status::kExtentOverflow);
}

TEST_F(View, test_make_unknown_dtype_refused) {
  EXPECT_EQ(make({2}, {1}, static_cast<DType>(7)), Status::kUnknownDType);
}

TEST_F(View, test_make_alignment_of_the_element_is_enough) {
  const Numbers extents = {2};
  const Numbers strides = {1};
  const auto at = [&](int offset, DType dtype) {
    return TensorView::make(memory_ + offset, extents, strides, dtype, &view_);
  };
  EXPECT_EQ(at(4, DType::kFloat32), Status::kOk);
  EXPECT_EQ(at(2, DType::kFloat32), Status::kMisaligned);
  EXPECT_EQ(at(2, DType::kBFloat16), Status::kOk);
  EXPECT_EQ(at(1, DType::kFloat16), Status::kMisaligned);
}

TEST_F(View, test_make_refused_leaves_view_alone) {
  const Numbers extents = {2};
  const Numbers strides = {1};
  ASSERT_EQ(make(extents, strides), Status::kOk);
  EXPECT_EQ(make({-1}, {1}), Status::kNegativeExtent);
  EXPECT_EQ(view_.elements(), 2);
}

TEST(Status, test_message_every_status_its_own) {
  std::vector<std::string> seen;
  for (int n = 0; n <= static_cast<int>(Status::kSumAlias); ++n) {
    const std::string text = status_message(static_cast<Status>(n));
    EXPECT_NE(text, "unknown status") << n;
    for (const std::string& other : seen) EXPECT_NE(text, other);
    seen.push_back(text);
  }
  EXPECT_STREQ(status_message(static_cast<Status>(999)), "unknown status");
}

// Walks every row from `first` and compares with plain index arithmetic.
void expect_rows(const Numbers& extents, const Numbers& strides,
                 std::int64_t first) {
  // No row is read; the base only has to leave room on both sides.
  static std::byte memory[1 << 16];
  const std::byte* base = memory + (1 << 15);
  TensorView view;
  ASSERT_EQ(TensorView::make(base, extents, strides, DType::kBFloat16, &view),
            Status::kOk);
  const simd::RowLayout layout(view);
  simd::RowCursor<const std::byte> cursor(layout, base, first);
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < extents.size(); ++axis) {
    rows *= extents[axis];
  }
  ASSERT_EQ(layout.rows(), rows);
  for (std::int64_t row = first; row < rows; ++row) {
    std::int64_t rest = row;
    std::int64_t offset = 0;
    for (std::size_t axis = extents.size() - 1; axis-- > 0;) {
      offset += rest % extents[axis] * strides[axis];
      rest /= extents[axis];
    }
    EXPECT_EQ(cursor.get() - base, offset * 2) << row;
    cursor.advance();
  }
}

TEST(Rows, test_cursor_any_strides_right_addresses) {
  for (const std::int64_t first : {0, 1, 5}) {
    expect_rows({4, 3, 8}, {24, 8, 1}, first);  // dense: one dimension
    expect_rows({4, 3, 8}, {8, 32, 1}, first);  // transposed leading ones
    expect_rows({4, 3, 8}, {0, 8, 1}, first);   // expanded
    expect_rows({4, 3, 8}, {0, 0, 1}, first);
    expect_rows({4, 3, 8}, {-24, -8, 1}, first);  // flipped
    expect_rows({2, 3, 2, 2, 8}, {100, 16, 8, 0, 1}, first);
    expect_rows({1, 12, 1, 8}, {7, 9, -3, 1}, first);
  }
  expect_rows({8}, {1}, 0);
}

TEST(Rows, test_layout_dense_merged_to_one_dimension) {
  static std::byte memory[4096];
  const Numbers extents = {2, 1, 3, 4, 8};
  const Numbers strides = {96, 5, 32, 8, 1};
  TensorView view;
  ASSERT_EQ(TensorView::make(memory, extents, strides, DType::kFloat32, &view),
            Status::kOk);
  EXPECT_EQ(simd::RowLayout(view).rank(), 1U);
}

TEST(Rows, test_rows_apart_overlaps_found) {
  static std::byte memory[4096];
  const auto apart = [](const Numbers& extents, const Numbers& strides) {
    TensorView view;
    EXPECT_EQ(TensorView::make(memory + 2048, extents, strides, DType::kFloat16,
                               &view),
              Status::kOk);
    return simd::RowLayout(view).rows_apart(extents.back() * 2);
  };
  EXPECT_TRUE(apart({3, 8}, {8, 1}));
  EXPECT_TRUE(apart({3, 8}, {-8, 1}));
  EXPECT_FALSE(apart({3, 8}, {7, 1}));
  EXPECT_FALSE(apart({3, 8}, {0, 1}));
  EXPECT_TRUE(apart({2, 3, 8}, {8, 16, 1}));
  EXPECT_FALSE(apart({2, 3, 8}, {8, 8, 1}));
  EXPECT_FALSE(apart({3, 2, 8}, {8, 16, 1}));
  EXPECT_TRUE(apart({8}, {1}));
}

}  // namespace
}  // namespace xllm_kernel::test
