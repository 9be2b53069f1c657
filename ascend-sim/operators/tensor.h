// What describes an operand of an operator: where its elements lie, or which
// number it is. Owns no device memory and reads none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "operators/dtype.h"
#include "runtime/task.h"

namespace ascend_sim {

using Sizes = std::vector<std::int64_t>;

struct Tensor {
  Sizes sizes;
  Sizes strides;  // in elements
  DType dtype = DType::kFloat32;
  Address address = 0;  // of the element with all indices 0
  // Where an operator whose result's size only the data tell leaves the size;
  // shared with the caller's descriptor.
  std::shared_ptr<Sizes> found;

  [[nodiscard]] std::int64_t rank() const {
    return static_cast<std::int64_t>(sizes.size());
  }
  [[nodiscard]] std::int64_t count() const;
};

// A number, kept as exactly as it came.
struct Scalar {
  std::variant<double, std::int64_t> value = 0.0;
  DType dtype = DType::kFloat64;

  [[nodiscard]] double as_double() const;
  [[nodiscard]] std::int64_t as_int64() const;
};

[[nodiscard]] std::int64_t count_of(const Sizes& sizes);
// "[2, 3]"
[[nodiscard]] std::string text_of(const Sizes& sizes);
// The same elements as seen with these sizes, which must broadcast from the
// tensor's own: repeated dimensions get stride 0.
[[nodiscard]] Tensor expand(const Tensor& tensor, const Sizes& sizes);
// The same bits as integers.
[[nodiscard]] Tensor as_bits(const Tensor& tensor);
// The part with this index along a dimension.
[[nodiscard]] Tensor select(const Tensor& tensor, std::int64_t dimension,
                            std::int64_t index);
// The dimensions in another order.
[[nodiscard]] Tensor permute(const Tensor& tensor, const Sizes& order);

// Declares that a task reads or writes the tensor's elements: one access for
// each contiguous run, or the whole reach where runs are many. Notes the
// operand for the trace.
void declare(Task& task, const Tensor& tensor, AccessKind kind);

}  // namespace ascend_sim
