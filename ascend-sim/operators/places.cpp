// See places.h.
#include "operators/places.h"

#include <span>

#include "operators/operand.h"

namespace ascend_sim {

Sizes coordinates_of(std::int64_t position, const Sizes& sizes) {
  Sizes out(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    out[d] = position % sizes[d];
    position /= sizes[d];
  }
  return out;
}

std::int64_t position_of(const Sizes& coordinates, const Sizes& sizes) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    position = position * sizes[d] + coordinates[d];
  }
  return position;
}

void move_element(const Bits& from, std::int64_t source, const Bits& to,
                  std::int64_t target) {
  std::int64_t bits = 0;
  from.read(source, std::span<std::int64_t>(&bits, 1));
  to.write(target, std::span<const std::int64_t>(&bits, 1));
}

void move_all(const Tensor& from, const Tensor& to) {
  Bits(as_bits(to)).write(0, Bits(as_bits(from)).read_all());
}

Task moving_task(const std::string& name, const std::vector<Tensor>& read,
                 const Tensor& written) {
  Task task;
  task.name = name;
  for (const Tensor& tensor : read) {
    require_simulated(name, tensor);
    declare(task, tensor, AccessKind::kRead);
  }
  require_simulated(name, written);
  declare(task, written, AccessKind::kWrite);
  return task;
}

}  // namespace ascend_sim
