// Rows at one distance from each other, which is what launchers read. Knows no
// operator.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace xllm_kernel::xlite {

// The rows along a tensor's last dimension.
[[nodiscard]] std::int64_t row_count(const at::Tensor& tensor);

// Elements from each row's start to the next one's where all lie at one
// distance and a row's elements are neighbours; the width where there are not
// two rows.
[[nodiscard]] std::optional<std::int64_t> row_step(const at::Tensor& tensor);

// The same elements under a tensor that Python never sees, for closures that
// another thread destroys. To destroy a tensor that has a Python object takes
// Python's lock; a thread that wants it while Python ends is unwound, and the
// process with it aborts.
[[nodiscard]] at::Tensor unseen(const at::Tensor& tensor);

// What a launcher gets: the tensor's own elements or, where its rows lie
// otherwise, a copy that the current stream makes.
struct Rows {
  explicit Rows(const at::Tensor& from);

  at::Tensor tensor;
  std::int64_t count;
  std::int64_t width;
  std::int64_t step;
};

}  // namespace xllm_kernel::xlite
