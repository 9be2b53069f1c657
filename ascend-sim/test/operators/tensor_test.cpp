// Which bytes a tensor's elements are declared to touch.
#include "operators/tensor.h"

#include <gtest/gtest.h>

namespace ascend_sim {
namespace {

std::vector<Access> accesses(Sizes sizes, Sizes strides) {
  Tensor tensor;
  tensor.sizes = std::move(sizes);
  tensor.strides = std::move(strides);
  tensor.dtype = DType::kFloat32;
  tensor.address = 1000;
  Task task;
  declare(task, tensor, AccessKind::kRead);
  return task.accesses;
}

TEST(Declare, contiguous_tensor_is_one_run_in_any_order_of_dimensions) {
  for (const auto& [sizes, strides] :
       {std::pair{Sizes{2, 3}, Sizes{3, 1}}, {Sizes{3, 2}, Sizes{1, 3}}}) {
    const auto found = accesses(sizes, strides);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].address, 1000U);
    EXPECT_EQ(found[0].bytes, 24U);
  }
}

TEST(Declare, rows_with_gaps_are_a_run_each) {
  const auto found = accesses({2, 3}, {5, 1});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].address, 1000U);
  EXPECT_EQ(found[1].address, 1020U);
  EXPECT_EQ(found[1].bytes, 12U);
}

TEST(Declare, repeated_dimension_counts_once) {
  const auto found = accesses({7, 3}, {0, 1});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].bytes, 12U);
}

TEST(Declare, many_runs_become_their_reach) {
  const auto found = accesses({2000, 3}, {5, 1});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].bytes, (1999U * 5U + 3U) * 4U);
}

TEST(Declare, empty_tensor_touches_nothing) {
  EXPECT_TRUE(accesses({0, 3}, {3, 1}).empty());
}

TEST(Expand, repeats_dimensions_of_size_1_and_new_ones) {
  Tensor tensor;
  tensor.sizes = {3, 1};
  tensor.strides = {1, 1};
  const Tensor out = expand(tensor, {2, 3, 4});
  EXPECT_EQ(out.sizes, (Sizes{2, 3, 4}));
  EXPECT_EQ(out.strides, (Sizes{0, 1, 0}));
}

}  // namespace
}  // namespace ascend_sim
