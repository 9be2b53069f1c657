// Operators that move elements, against results worked out by hand.
#include "operators/index.h"

#include "device_tensor.h"
#include "operators/concatenate.h"
#include "operators/found.h"

namespace ascend_sim::test {
namespace {

TEST(Concatenate, along_a_dimension_in_the_middle_and_a_new_one) {
  const Longs a(DType::kInt64, {2, 1}, {1, 2});
  const Longs b(DType::kInt64, {2, 2}, {3, 4, 5, 6});
  const Longs out(DType::kInt64, {2, 3}, std::vector<std::int64_t>(6));
  run(concatenate("test", {a.view(), b.view()}, -1, out.view()));
  EXPECT_EQ(out.values(), (std::vector<std::int64_t>{1, 3, 4, 2, 5, 6}));
  const Longs pair(DType::kInt64, {2, 2, 1}, {0, 0, 0, 0});
  run(stack("test", {a.view(), a.view()}, 1, pair.view()));
  EXPECT_EQ(pair.values(), (std::vector<std::int64_t>{1, 1, 2, 2}));
  EXPECT_EQ(
      refusal([&] { return concatenate("test", {a.view()}, 1, out.view()); }),
      "test: the result must have 1 along dim, got [2, 3]");
}

TEST(IndexSelect, counts_negative_indices_from_the_end) {
  const Longs self(DType::kInt64, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Longs index(DType::kInt64, {2}, {-1, 0});
  const Longs out(DType::kInt64, {2, 2}, {0, 0, 0, 0});
  run(index_select("test", self.view(), 1, index.view(), out.view()));
  EXPECT_EQ(out.values(), (std::vector<std::int64_t>{3, 1, 6, 4}));
}

TEST(IndexSelect, an_index_beyond_the_dimension_fails_the_task) {
  const Longs self(DType::kInt64, {2}, {1, 2});
  const Longs index(DType::kInt64, {1}, {2});
  const Longs out(DType::kInt64, {1}, {7});
  // The body alone: on a stream the failure would stay for later tests.
  EXPECT_EQ(
      index_select("test", self.view(), 0, index.view(), out.view()).body(),
      Status::kVectorCoreException);
  const auto reports = Runtime::get().take_reports();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].kind, "index-out-of-range");
  EXPECT_EQ(out.values()[0], 7);
}

TEST(Gather, has_an_index_for_each_result) {
  const Longs self(DType::kInt64, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Longs index(DType::kInt64, {2, 2}, {2, 0, 1, 1});
  const Longs out(DType::kInt64, {2, 2}, {0, 0, 0, 0});
  run(gather("test", self.view(), 1, index.view(), out.view()));
  EXPECT_EQ(out.values(), (std::vector<std::int64_t>{3, 1, 5, 5}));
}

class Indexing : public ::testing::Test {
 protected:
  static Tensor none() {
    Tensor tensor;
    tensor.sizes = {0};
    tensor.strides = {1};
    return tensor;
  }
  // self[i, j, k] = 100 i + 10 j + k
  const Longs self_{
      DType::kInt64, {2, 2, 2}, {0, 1, 10, 11, 100, 101, 110, 111}};
};

TEST_F(Indexing, adjacent_indices_stay_where_they_are) {
  const Longs j(DType::kInt64, {1}, {1});
  const Longs k(DType::kInt64, {3, 1}, {0, 1, 0});
  const Longs out(DType::kInt64, {2, 3, 1}, std::vector<std::int64_t>(6));
  run(index("test", self_.view(), {none(), j.view(), k.view()}, out.view()));
  EXPECT_EQ(out.values(),
            (std::vector<std::int64_t>{10, 11, 10, 110, 111, 110}));
}

TEST_F(Indexing, separated_indices_go_to_the_front) {
  const Longs i(DType::kInt64, {3}, {1, 0, 1});
  const Longs k(DType::kInt64, {3}, {0, 1, 1});
  const Longs out(DType::kInt64, {3, 1, 2}, std::vector<std::int64_t>(6));
  // One more dimension before them, so that the front is not where they are.
  const Tensor deep = self_.view({1, 2, 2, 2}, {8, 4, 2, 1});
  run(index("test", deep, {none(), i.view(), none(), k.view()}, out.view()));
  EXPECT_EQ(out.values(),
            (std::vector<std::int64_t>{100, 110, 1, 11, 101, 111}));
}

TEST_F(Indexing, put_writes_only_what_is_indexed) {
  const Longs i(DType::kInt64, {1}, {1});
  const Longs values(DType::kInt64, {2}, {-1, -2});
  run(index_put("test", self_.view(), {i.view()}, values.view()));
  EXPECT_EQ(self_.values(),
            (std::vector<std::int64_t>{0, 1, 10, 11, -1, -2, -1, -2}));
}

TEST_F(Indexing, without_any_index_nothing_is_written) {
  const Longs value(DType::kInt64, {}, {5});
  run(index_put("test", self_.view(), {none(), none(), none()}, value.view()));
  EXPECT_EQ(self_.values()[0], 0);
}

TEST(Found, masked_select_tells_how_many_there_were) {
  const Floats self(DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  const Bools mask(DType::kBool, {2}, {0, 1});
  const Floats out(DType::kFloat32, {4}, {-1, -1, -1, -1});
  run(masked_select("test", self.view(), mask.view(), out.view()));
  EXPECT_EQ(*out.view().found, (Sizes{2}));
  EXPECT_EQ(out.values(), (std::vector<float>{2, 4, -1, -1}));
}

TEST(Found, nonzero_lists_indices_by_element_and_by_dimension) {
  const Floats self(DType::kFloat32, {2, 2}, {0, 2, 0, 4});
  const Longs rows(DType::kInt64, {4, 2}, std::vector<std::int64_t>(8, -1));
  const Longs columns(DType::kInt64, {2, 4}, std::vector<std::int64_t>(8, -1));
  run(nonzero("test", self.view(), NonzeroForm::kByElement, rows.view()));
  run(nonzero("test", self.view(), NonzeroForm::kByDimension, columns.view()));
  EXPECT_EQ(*rows.view().found, (Sizes{2, 2}));
  EXPECT_EQ(rows.values(),
            (std::vector<std::int64_t>{0, 1, 1, 1, -1, -1, -1, -1}));
  EXPECT_EQ(columns.values(),
            (std::vector<std::int64_t>{0, 1, 1, 1, -1, -1, -1, -1}));
}

}  // namespace
}  // namespace ascend_sim::test
