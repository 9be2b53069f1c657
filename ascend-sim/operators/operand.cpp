// See operand.h.
#include "operators/operand.h"

#include <algorithm>

namespace ascend_sim {

void require_simulated(const std::string& name, const Tensor& tensor) {
  require(is_simulated(tensor.dtype), name,
          name_of(tensor.dtype) + " is not simulated");
}

void require_sizes(const std::string& name, const std::string& operand,
                   const Tensor& tensor, const Sizes& sizes) {
  require(tensor.sizes == sizes, name,
          operand + "'s sizes must be " + text_of(sizes) + ", got " +
              text_of(tensor.sizes));
}

void require_dtype(const std::string& name, const std::string& operand,
                   const Tensor& tensor, std::initializer_list<DType> allowed) {
  if (std::ranges::find(allowed, tensor.dtype) != allowed.end()) return;
  std::string list;
  for (const DType dtype : allowed) {
    list += (list.empty() ? "" : ", ") + name_of(dtype);
  }
  require(
      false, name,
      operand + " must be one of " + list + ", got " + name_of(tensor.dtype));
}

std::int64_t dimension_of(const std::string& name, std::int64_t dimension,
                          std::int64_t rank) {
  // A number without dimensions counts as one with one.
  const std::int64_t least = std::max<std::int64_t>(rank, 1);
  require(dimension >= -least && dimension < least, name,
          "dim must be in [" + std::to_string(-least) + ", " +
              std::to_string(least - 1) + "], got " +
              std::to_string(dimension));
  return dimension < 0 ? dimension + least : dimension;
}

}  // namespace ascend_sim
