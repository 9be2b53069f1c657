// See fill.h.
#include "operators/fill.h"

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "operators/elements.h"
#include "operators/operand.h"

namespace ascend_sim {
namespace {

template <class C, class At>
void generate(const Tensor& out, At&& at) {
  std::vector<C> values(static_cast<std::size_t>(out.count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = at(static_cast<std::int64_t>(i));
  }
  Elements<C>(out).write(0, values);
}

Task fill_task(const std::string& name, const Tensor& out,
               std::function<Status()> body) {
  require_simulated(name, out);
  Task task;
  task.name = name;
  declare(task, out, AccessKind::kWrite);
  task.body = std::move(body);
  return task;
}

// A bijection that leaves no visible pattern (the finaliser of splitmix64).
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

class Draw final {
 public:
  explicit Draw(const RandomSource& source)
      : key_(mixed(number(source.seed_tensor, source.seed)) ^
             mixed(source.offset + number(source.offset_tensor, 0))) {}

  [[nodiscard]] std::uint64_t bits(std::int64_t index) const {
    return mixed(key_ + static_cast<std::uint64_t>(index));
  }
  // In [0, 1), a multiple of 2^-24: exact in float32.
  [[nodiscard]] double unit(std::int64_t index) const {
    return static_cast<double>(bits(index) >> 40U) * 0x1p-24;
  }

 private:
  static std::uint64_t number(const std::optional<Tensor>& tensor,
                              std::uint64_t otherwise) {
    if (!tensor) return otherwise;
    return static_cast<std::uint64_t>(
        Elements<std::int64_t>(*tensor).read_all().at(0));
  }

  std::uint64_t key_;
};

Task random_task(const std::string& name, const RandomSource& source,
                 const Tensor& out, std::function<Status()> body) {
  Task task = fill_task(name, out, std::move(body));
  for (const auto* counter : {&source.seed_tensor, &source.offset_tensor}) {
    if (*counter) declare(task, **counter, AccessKind::kRead);
  }
  return task;
}

}  // namespace

Task arange(const std::string& name, const Scalar& start, const Scalar& step,
            const Tensor& out) {
  const bool integers = !is_floating(start.dtype) && !is_floating(step.dtype) &&
                        !is_floating(out.dtype);
  return fill_task(name, out, [start, step, out, integers] {
    if (integers) {
      generate<std::int64_t>(out, [&](std::int64_t i) {
        return start.as_int64() + i * step.as_int64();
      });
    } else {
      generate<double>(out, [&](std::int64_t i) {
        return start.as_double() + static_cast<double>(i) * step.as_double();
      });
    }
    return Status::kOk;
  });
}

Task uniform(const std::string& name, double low, double high,
             const RandomSource& source, const Tensor& out) {
  return random_task(name, source, out, [=] {
    const Draw draw(source);
    generate<double>(
        out, [&](std::int64_t i) { return low + (high - low) * draw.unit(i); });
    return Status::kOk;
  });
}

Task normal(const std::string& name, double mean, double deviation,
            const RandomSource& source, const Tensor& out) {
  return random_task(name, source, out, [=] {
    const Draw draw(source);
    // Box and Muller's transform, of which each element uses one half.
    generate<double>(out, [&](std::int64_t i) {
      const double radius = std::sqrt(-2 * std::log1p(-draw.unit(2 * i)));
      const double angle = 2 * std::numbers::pi * draw.unit(2 * i + 1);
      return mean + deviation * radius * std::cos(angle);
    });
    return Status::kOk;
  });
}

Task random_integers(const std::string& name, std::int64_t low,
                     std::int64_t high, const RandomSource& source,
                     const Tensor& out) {
  require(low < high, name,
          "from must be below to, got " + std::to_string(low) + " and " +
              std::to_string(high));
  return random_task(name, source, out, [=] {
    const Draw draw(source);
    const auto range =
        static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    generate<std::int64_t>(out, [&](std::int64_t i) {
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) +
                                       draw.bits(i) % range);
    });
    return Status::kOk;
  });
}

}  // namespace ascend_sim
