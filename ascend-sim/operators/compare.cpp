// See compare.h.
#include "operators/compare.h"

#include <cmath>
#include <span>
#include <vector>

#include "operators/elements.h"
#include "operators/operand.h"

namespace ascend_sim {
namespace {

template <class C>
bool same_elements(const Tensor& one, const Tensor& other) {
  return Elements<C>(one).read_all() == Elements<C>(other).read_all();
}

}  // namespace

Task equal(const std::string& name, const Tensor& self, const Tensor& other,
           const Tensor& out) {
  require_simulated(name, self);
  require_simulated(name, other);
  require(out.count() == 1, name,
          "the result must have one element, got " + text_of(out.sizes));
  Task task;
  task.name = name;
  declare(task, self, AccessKind::kRead);
  declare(task, other, AccessKind::kRead);
  declare(task, out, AccessKind::kWrite);
  task.body = [=] {
    const bool floating = is_floating(self.dtype) || is_floating(other.dtype);
    const bool alike = self.sizes == other.sizes &&
                       (floating ? same_elements<double>(self, other)
                                 : same_elements<std::int64_t>(self, other));
    const auto same = static_cast<std::int64_t>(alike);
    Elements<std::int64_t>(out).write(0,
                                      std::span<const std::int64_t>(&same, 1));
    return Status::kOk;
  };
  return task;
}

Task is_close(const std::string& name, const Tensor& self, const Tensor& other,
              const Closeness& closeness, const Tensor& out) {
  require_simulated(name, self);
  require_simulated(name, other);
  require_simulated(name, out);
  require_sizes(name, "the result", out,
                broadcast_sizes(name, self.sizes, other.sizes));
  Task task;
  task.name = name;
  declare(task, self, AccessKind::kRead);
  declare(task, other, AccessKind::kRead);
  declare(task, out, AccessKind::kWrite);
  task.body = [=] {
    const auto a = Elements<double>(expand(self, out.sizes)).read_all();
    const auto b = Elements<double>(expand(other, out.sizes)).read_all();
    std::vector<std::int64_t> close(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double difference = std::fabs(a[i] - b[i]);
      const double allowed =
          closeness.absolute + std::fabs(closeness.relative * b[i]);
      const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
      close[i] = static_cast<std::int64_t>(
          a[i] == b[i] ||
          (std::isfinite(difference) && difference <= allowed) ||
          (closeness.nan_is_close && both_nan));
    }
    Elements<std::int64_t>(out).write(0, close);
    return Status::kOk;
  };
  return task;
}

}  // namespace ascend_sim
