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

Sizes broadcast_sizes(const std::string& name, const Sizes& one,
                      const Sizes& other) {
  Sizes out(std::max(one.size(), other.size()), 1);
  for (std::size_t back = 1; back <= out.size(); ++back) {
    const std::int64_t a = back <= one.size() ? one[one.size() - back] : 1;
    const std::int64_t b =
        back <= other.size() ? other[other.size() - back] : 1;
    require(a == b || a == 1 || b == 1, name,
            "operands' sizes must broadcast, got " + text_of(one) + " and " +
                text_of(other));
    out[out.size() - back] = a == 1 ? b : a;
  }
  return out;
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
