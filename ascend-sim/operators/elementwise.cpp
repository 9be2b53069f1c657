// See elementwise.h.
#include "operators/elementwise.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "operators/elements.h"
#include "operators/functions.h"
#include "operators/operand.h"

namespace ascend_sim {
namespace {

const ElementFunction& function_of(const std::string& name,
                                   std::string_view wanted) {
  const ElementFunction* found = find_function(wanted);
  require(found != nullptr, name,
          "no function " + std::string(wanted) + " is simulated");
  return *found;
}

template <class C>
C value_of(const Scalar& scalar) {
  if constexpr (std::is_floating_point_v<C>) {
    return static_cast<C>(scalar.as_double());
  } else {
    return scalar.as_int64();
  }
}

constexpr std::int64_t kBlock = 1024;

// One operand's values, a block at a time.
template <class C>
class Source final {
 public:
  Source(const Operand& operand, const Sizes& sizes)
      : values_(static_cast<std::size_t>(kBlock)) {
    if (const auto* tensor = std::get_if<Tensor>(&operand)) {
      elements_.emplace(expand(*tensor, sizes));
    } else {
      std::ranges::fill(values_, value_of<C>(std::get<Scalar>(operand)));
    }
  }

  std::span<const C> read(std::int64_t first, std::int64_t count) {
    const std::span<C> block(values_.data(), static_cast<std::size_t>(count));
    if (elements_) elements_->read(first, block);
    return block;
  }

 private:
  std::optional<Elements<C>> elements_;
  std::vector<C> values_;
};

template <class C>
void compute(Compute<C> function, const std::vector<Operand>& operands,
             const Tensor& out) {
  std::vector<Source<C>> sources;
  sources.reserve(operands.size());
  for (const Operand& operand : operands) {
    sources.emplace_back(operand, out.sizes);
  }
  const Elements<C> results(out);
  std::vector<C> block(static_cast<std::size_t>(kBlock));
  for (std::int64_t first = 0; first < out.count(); first += kBlock) {
    const std::int64_t count = std::min(kBlock, out.count() - first);
    std::array<std::span<const C>, kMostOperands> values;
    for (std::size_t k = 0; k < kMostOperands; ++k) {
      // A function ignores the operands that it does not have.
      values[k] =
          k < sources.size() ? sources[k].read(first, count) : values[0];
    }
    const std::span<C> computed(block.data(), static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < computed.size(); ++i) {
      computed[i] = function(values[0][i], values[1][i], values[2][i]);
    }
    results.write(first, computed);
  }
}

enum class ComputeType : std::uint8_t { kFloat, kDouble, kInt64 };

ComputeType compute_type(const std::vector<Operand>& operands,
                         const Tensor& out) {
  bool floating = is_floating(out.dtype);
  bool is_double = out.dtype == DType::kFloat64;
  for (const Operand& operand : operands) {
    if (const auto* tensor = std::get_if<Tensor>(&operand)) {
      floating = floating || is_floating(tensor->dtype);
      is_double = is_double || tensor->dtype == DType::kFloat64;
    } else {
      floating = floating || is_floating(std::get<Scalar>(operand).dtype);
    }
  }
  if (is_double) return ComputeType::kDouble;
  return floating ? ComputeType::kFloat : ComputeType::kInt64;
}

void check(const std::string& name, const std::vector<Operand>& operands,
           const Tensor& out) {
  Sizes sizes;
  for (const Operand& operand : operands) {
    const auto* tensor = std::get_if<Tensor>(&operand);
    if (tensor == nullptr) continue;
    require_simulated(name, *tensor);
    sizes = broadcast_sizes(name, sizes, tensor->sizes);
  }
  require_simulated(name, out);
  require(broadcast_sizes(name, sizes, out.sizes) == out.sizes, name,
          "the result's sizes must be " + text_of(sizes) + ", got " +
              text_of(out.sizes));
}

}  // namespace

Task elementwise(const std::string& name, std::string_view function,
                 std::vector<Operand> operands, const Tensor& out) {
  const ElementFunction& chosen = function_of(name, function);
  require(operands.size() == chosen.operands, name,
          "takes " + std::to_string(chosen.operands) + " operands");
  check(name, operands, out);
  Task task;
  task.name = name;
  for (const Operand& operand : operands) {
    if (const auto* tensor = std::get_if<Tensor>(&operand)) {
      declare(task, *tensor, AccessKind::kRead);
    }
  }
  declare(task, out, AccessKind::kWrite);
  const ComputeType type = compute_type(operands, out);
  task.body = [&chosen, operands = std::move(operands), out, type] {
    switch (type) {
      case ComputeType::kDouble:
        compute<double>(chosen.in_double, operands, out);
        break;
      case ComputeType::kFloat:
        compute<float>(chosen.in_float, operands, out);
        break;
      case ComputeType::kInt64:
        compute<std::int64_t>(chosen.in_int64, operands, out);
        break;
    }
    return Status::kOk;
  };
  return task;
}

Task bitwise_not(const std::string& name, const Tensor& self,
                 const Tensor& out) {
  require(!is_floating(self.dtype), name,
          "self must be an integer or bool tensor, got " + name_of(self.dtype));
  return elementwise(name, self.dtype == DType::kBool ? "LogicalNot" : "Invert",
                     {self}, out);
}

Task copy(const std::string& name, const Tensor& from, const Tensor& to) {
  require_simulated(name, from);
  require_simulated(name, to);
  const bool same = from.dtype == to.dtype;
  return elementwise(name, "Identity", {same ? as_bits(from) : from},
                     same ? as_bits(to) : to);
}

}  // namespace ascend_sim
