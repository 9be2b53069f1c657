// See concatenate.h.
#include "operators/concatenate.h"

#include <utility>

#include "operators/operand.h"
#include "operators/places.h"

namespace ascend_sim {
namespace {

Tensor narrowed(const Tensor& tensor, std::int64_t dimension,
                std::int64_t start, std::int64_t length) {
  Tensor out = tensor;
  const auto at = static_cast<std::size_t>(dimension);
  out.address +=
      static_cast<Address>(start * tensor.strides[at]) * size_of(tensor.dtype);
  out.sizes[at] = length;
  return out;
}

}  // namespace

Task concatenate(const std::string& name, const std::vector<Tensor>& tensors,
                 std::int64_t dimension, const Tensor& out) {
  const std::int64_t at = dimension_of(name, dimension, out.rank());
  std::int64_t total = 0;
  std::vector<std::pair<Tensor, Tensor>> moves;
  for (const Tensor& tensor : tensors) {
    if (tensor.sizes == Sizes{0}) continue;
    Sizes sizes = out.sizes;
    require(tensor.rank() == out.rank(), name,
            "all tensors must have the result's rank");
    const std::int64_t length = tensor.sizes[static_cast<std::size_t>(at)];
    sizes[static_cast<std::size_t>(at)] = length;
    require_sizes(name, "a tensor", tensor, sizes);
    require_dtype(name, "a tensor", tensor, {out.dtype});
    moves.emplace_back(tensor, narrowed(out, at, total, length));
    total += length;
  }
  require(total == out.sizes[static_cast<std::size_t>(at)], name,
          "the result must have " + std::to_string(total) + " along dim, got " +
              text_of(out.sizes));
  Task task = moving_task(name, tensors, out);
  task.body = [moves = std::move(moves)] {
    for (const auto& [from, to] : moves) move_all(from, to);
    return Status::kOk;
  };
  return task;
}

Task stack(const std::string& name, const std::vector<Tensor>& tensors,
           std::int64_t dimension, const Tensor& out) {
  const std::int64_t at = dimension_of(name, dimension, out.rank());
  std::vector<Tensor> unsqueezed;
  for (Tensor tensor : tensors) {
    require(tensor.rank() + 1 == out.rank(), name,
            "all tensors must have one dimension less than the result");
    tensor.sizes.insert(tensor.sizes.begin() + at, 1);
    tensor.strides.insert(tensor.strides.begin() + at, 0);
    unsqueezed.push_back(std::move(tensor));
  }
  return concatenate(name, unsqueezed, at, out);
}

}  // namespace ascend_sim
