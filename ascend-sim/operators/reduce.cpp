// See reduce.h.
#include "operators/reduce.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "operators/accumulate.h"
#include "operators/elements.h"
#include "operators/operand.h"

namespace ascend_sim {
namespace {

// The operand with its reduced dimensions last: each result comes from the next
// `length` elements in row-major order.
struct Groups {
  Tensor tensor;
  std::int64_t length = 1;
  std::int64_t count = 1;
};

Groups group(const std::string& name, const Tensor& self,
             const Sizes& dimensions) {
  std::vector<bool> reduced(self.sizes.size(), dimensions.empty());
  for (const std::int64_t dimension : dimensions) {
    const auto at = dimension_of(name, dimension, self.rank());
    if (self.rank() > 0) reduced[static_cast<std::size_t>(at)] = true;
  }
  Sizes order;
  Groups out;
  for (const bool pass : {false, true}) {
    for (std::size_t i = 0; i < reduced.size(); ++i) {
      if (reduced[i] != pass) continue;
      order.push_back(static_cast<std::int64_t>(i));
      (pass ? out.length : out.count) *= self.sizes[i];
    }
  }
  out.tensor = permute(self, order);
  return out;
}

template <class C>
bool beats(C challenger, C champion, Reduction reduction) {
  if (champion != champion) return false;
  if (challenger != challenger) return true;
  return reduction == Reduction::kMax ? challenger > champion
                                      : challenger < champion;
}

template <class C>
std::size_t extreme_of(std::span<const C> values, Reduction reduction) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (beats(values[i], values[best], reduction)) best = i;
  }
  return best;
}

template <class C>
C reduced(std::span<const C> values, Reduction reduction) {
  const auto truth = [](C value) { return value != 0; };
  switch (reduction) {
    case Reduction::kSum:
      return sum_of(values);
    case Reduction::kMean:
      return sum_of(values) / static_cast<C>(values.size());
    case Reduction::kMax:
    case Reduction::kMin:
      return values[extreme_of(values, reduction)];
    case Reduction::kAll:
      return static_cast<C>(std::ranges::all_of(values, truth));
    case Reduction::kAny:
      return static_cast<C>(std::ranges::any_of(values, truth));
  }
  return C{};
}

template <class C>
void reduce_groups(const Groups& groups, Reduction reduction,
                   const Tensor& out) {
  const Elements<C> values(groups.tensor);
  const Elements<C> results(out);
  std::vector<C> block(static_cast<std::size_t>(groups.length));
  for (std::int64_t i = 0; i < groups.count; ++i) {
    values.read(i * groups.length, block);
    const C result = reduced<C>(block, reduction);
    results.write(i, std::span<const C>(&result, 1));
  }
}

// Calls with a value of the type to compute in.
template <class Call>
void with_compute_type(const Tensor& self, const Tensor& out, Call&& call) {
  if (self.dtype == DType::kFloat64 || out.dtype == DType::kFloat64) {
    call(double{});
  } else if (is_floating(self.dtype) || is_floating(out.dtype)) {
    call(float{});
  } else {
    call(std::int64_t{});
  }
}

void require_count(const std::string& name, const Tensor& out,
                   std::int64_t count) {
  require_simulated(name, out);
  require(out.count() == count, name,
          "the result must have " + std::to_string(count) + " elements, got " +
              std::to_string(out.count()));
}

}  // namespace

Task reduce(const std::string& name, Reduction reduction, const Tensor& self,
            const Sizes& dimensions, const Tensor& out) {
  require_simulated(name, self);
  const Groups groups = group(name, self, dimensions);
  require_count(name, out, groups.count);
  const bool extreme =
      reduction == Reduction::kMax || reduction == Reduction::kMin;
  require(!extreme || groups.length > 0, name, "self must not be empty");
  Task task;
  task.name = name;
  declare(task, self, AccessKind::kRead);
  declare(task, out, AccessKind::kWrite);
  task.body = [groups, reduction, self, out] {
    with_compute_type(self, out, [&]<class C>(C) {
      reduce_groups<C>(groups, reduction, out);
    });
    return Status::kOk;
  };
  return task;
}

Task reduce_to_extreme(const std::string& name, Reduction reduction,
                       const Tensor& self, std::int64_t dimension,
                       const ExtremeResults& results) {
  require_simulated(name, self);
  const Groups groups = group(name, self, {dimension});
  require(groups.length > 0, name, "self must not be empty along dim");
  Task task;
  task.name = name;
  declare(task, self, AccessKind::kRead);
  std::optional<Tensor> values;
  std::optional<Tensor> indices;
  for (const auto& [kept, given] :
       {std::pair{&values, results.values}, {&indices, results.indices}}) {
    if (given == nullptr) continue;
    require_count(name, *given, groups.count);
    declare(task, *given, AccessKind::kWrite);
    *kept = *given;
  }
  task.body = [=] {
    with_compute_type(self, self, [&]<class C>(C) {
      const Elements<C> all(groups.tensor);
      std::vector<C> block(static_cast<std::size_t>(groups.length));
      for (std::int64_t i = 0; i < groups.count; ++i) {
        all.read(i * groups.length, block);
        const std::size_t best =
            extreme_of(std::span<const C>(block), reduction);
        const auto index = static_cast<std::int64_t>(best);
        if (values) {
          Elements<C>(*values).write(i, std::span<const C>(&block[best], 1));
        }
        if (indices) {
          Elements<std::int64_t>(*indices).write(
              i, std::span<const std::int64_t>(&index, 1));
        }
      }
    });
    return Status::kOk;
  };
  return task;
}

}  // namespace ascend_sim
