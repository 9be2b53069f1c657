// See found.h.
#include "operators/found.h"

#include <span>
#include <vector>

#include "operators/operand.h"
#include "operators/places.h"

namespace ascend_sim {

Task masked_select(const std::string& name, const Tensor& self,
                   const Tensor& mask, const Tensor& out) {
  const Sizes sizes = broadcast_sizes(name, self.sizes, mask.sizes);
  require_dtype(name, "mask", mask, {DType::kBool, DType::kUint8});
  require_dtype(name, "the result", out, {self.dtype});
  require_sizes(name, "the result", out, {count_of(sizes)});
  Task task = moving_task(name, {self, mask}, out);
  task.body = [=] {
    const auto chosen = Bits(expand(mask, sizes)).read_all();
    const Bits source(as_bits(expand(self, sizes)));
    const Bits target(as_bits(out));
    std::int64_t count = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] == 0) continue;
      move_element(source, static_cast<std::int64_t>(i), target, count++);
    }
    *out.found = {count};
    return Status::kOk;
  };
  return task;
}

Task nonzero(const std::string& name, const Tensor& self, NonzeroForm form,
             const Tensor& out) {
  require_dtype(name, "the result", out, {DType::kInt64});
  require(out.count() == self.rank() * self.count(), name,
          "the result must have room for every element's indices, got " +
              text_of(out.sizes));
  Task task = moving_task(name, {self}, out);
  task.body = [=] {
    const auto values = Elements<double>(self).read_all();
    std::vector<std::int64_t> found;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != 0) found.push_back(static_cast<std::int64_t>(i));
    }
    const auto count = static_cast<std::int64_t>(found.size());
    const bool rows = form == NonzeroForm::kByElement;
    Tensor dense = out;  // the results lie one behind the other
    dense.sizes = {self.rank() * count};
    dense.strides = {1};
    const Bits results(dense);
    for (std::int64_t i = 0; i < count; ++i) {
      const Sizes where =
          coordinates_of(found[static_cast<std::size_t>(i)], self.sizes);
      for (std::int64_t d = 0; d < self.rank(); ++d) {
        results.write(rows ? i * self.rank() + d : d * count + i,
                      std::span<const std::int64_t>(
                          &where[static_cast<std::size_t>(d)], 1));
      }
    }
    *out.found = rows ? Sizes{count, self.rank()} : Sizes{self.rank(), count};
    return Status::kOk;
  };
  return task;
}

}  // namespace ascend_sim
