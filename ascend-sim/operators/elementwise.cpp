// See elementwise.h. The table holds every function; nothing here knows which
// C symbols use it.
#include "operators/elementwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "operators/elements.h"
#include "operators/operand.h"

namespace ascend_sim {
namespace {

constexpr std::size_t kMostOperands = 3;

// Takes as many of the arguments as the function has operands.
template <class C>
using Compute = C (*)(C, C, C);

struct Function {
  std::string_view name;
  std::size_t operands;
  Compute<float> in_float;
  Compute<double> in_double;
  Compute<std::int64_t> in_int64;
};

template <class C>
inline constexpr bool kFloating = std::is_floating_point_v<C>;

// Integers wrap around, as the device's do.
template <class C, class Op>
C wrapping(C a, C b, Op op) {
  if constexpr (kFloating<C>) {
    return op(a, b);
  } else {
    return static_cast<C>(
        op(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  }
}

template <class C>
C add(C a, C b) {
  return wrapping(a, b, [](auto x, auto y) { return x + y; });
}

template <class C>
C subtract(C a, C b) {
  return wrapping(a, b, [](auto x, auto y) { return x - y; });
}

template <class C>
C multiply(C a, C b) {
  return wrapping(a, b, [](auto x, auto y) { return x * y; });
}

// An integer divided by 0 gives 0 here: the vendor leaves it open.
template <class C>
C divide(C a, C b) {
  if constexpr (kFloating<C>) {
    return a / b;
  } else {
    if (b == 0) return 0;
    return b == -1 ? subtract<C>(0, a) : a / b;
  }
}

template <class C>
C floor_divide(C a, C b) {
  const C quotient = divide(a, b);
  if constexpr (kFloating<C>) {
    return std::floor(quotient);
  } else {
    const bool inexact = b != 0 && b != -1 && a % b != 0;
    return inexact && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }
}

template <class C>
C power(C base, C exponent) {
  if constexpr (kFloating<C>) {
    return std::pow(base, exponent);
  } else {
    if (exponent < 0)
      return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    C result = 1;
    for (; exponent > 0; exponent /= 2) {
      if (exponent % 2 == 1) result = multiply(result, base);
      base = multiply(base, base);
    }
    return result;
  }
}

// A NaN on either side is the result.
template <class C>
C greater_of(C a, C b) {
  return a != a || a > b ? a : b;
}

template <class C>
C lesser_of(C a, C b) {
  return a != a || a < b ? a : b;
}

template <class C>
bool finite(C a) {
  if constexpr (kFloating<C>) return std::isfinite(a);
  return true;
}

// Functions that are defined for floating point alone give integers the
// float64 result, cut off.
template <class C, class Op>
C in_floating(C a, Op op) {
  if constexpr (kFloating<C>) {
    return op(a);
  } else {
    return static_cast<C>(op(static_cast<double>(a)));
  }
}

template <class F>
constexpr Function unary(std::string_view name, F) {
  return {name, 1,
          [](float a, float, float) { return static_cast<float>(F{}(a)); },
          [](double a, double, double) { return static_cast<double>(F{}(a)); },
          [](std::int64_t a, std::int64_t, std::int64_t) {
            return static_cast<std::int64_t>(F{}(a));
          }};
}

template <class F>
constexpr Function binary(std::string_view name, F) {
  return {
      name, 2,
      [](float a, float b, float) { return static_cast<float>(F{}(a, b)); },
      [](double a, double b, double) { return static_cast<double>(F{}(a, b)); },
      [](std::int64_t a, std::int64_t b, std::int64_t) {
        return static_cast<std::int64_t>(F{}(a, b));
      }};
}

template <class F>
constexpr Function ternary(std::string_view name, F) {
  return {name, 3,
          [](float a, float b, float c) {
            return static_cast<float>(F{}(a, b, c));
          },
          [](double a, double b, double c) {
            return static_cast<double>(F{}(a, b, c));
          },
          [](std::int64_t a, std::int64_t b, std::int64_t c) {
            return static_cast<std::int64_t>(F{}(a, b, c));
          }};
}

#define ASCEND_SIM_FLOATING(expression) \
  [](auto a) { return in_floating(a, [](auto x) { return (expression); }); }

constexpr std::array kFunctions = {
    unary("Identity", [](auto a) { return a; }),
    unary("Abs",
          [](auto a) {
            return a < 0    ? subtract<decltype(a)>(0, a)
                   : a == 0 ? decltype(a){0}
                            : a;
          }),
    unary("Neg", [](auto a) { return -a; }),
    unary("Sign",
          [](auto a) { return a != a ? a : decltype(a)((a > 0) - (a < 0)); }),
    unary("Relu", [](auto a) { return greater_of<decltype(a)>(a, 0); }),
    unary("Sqrt", ASCEND_SIM_FLOATING(std::sqrt(x))),
    unary("Rsqrt", ASCEND_SIM_FLOATING(1 / std::sqrt(x))),
    unary("Reciprocal", ASCEND_SIM_FLOATING(1 / x)),
    unary("Exp", ASCEND_SIM_FLOATING(std::exp(x))),
    unary("Log", ASCEND_SIM_FLOATING(std::log(x))),
    unary("Log10", ASCEND_SIM_FLOATING(std::log10(x))),
    unary("Log2", ASCEND_SIM_FLOATING(std::log2(x))),
    unary("Sin", ASCEND_SIM_FLOATING(std::sin(x))),
    unary("Cos", ASCEND_SIM_FLOATING(std::cos(x))),
    unary("Tanh", ASCEND_SIM_FLOATING(std::tanh(x))),
    unary("Sigmoid", ASCEND_SIM_FLOATING(1 / (1 + std::exp(-x)))),
    unary("Silu", ASCEND_SIM_FLOATING(x / (1 + std::exp(-x)))),
    unary("Ceil", ASCEND_SIM_FLOATING(std::ceil(x))),
    unary("Floor", ASCEND_SIM_FLOATING(std::floor(x))),
    unary("Trunc", ASCEND_SIM_FLOATING(std::trunc(x))),
    unary("Round", ASCEND_SIM_FLOATING(std::nearbyint(x))),
    unary("IsFinite", [](auto a) { return finite(a); }),
    unary("IsPosInf", [](auto a) { return !finite(a) && a > 0; }),
    unary("IsNegInf", [](auto a) { return !finite(a) && a < 0; }),
    unary("LogicalNot", [](auto a) { return a == 0; }),
    unary("Invert", [](auto a) { return subtract<decltype(a)>(-1, a); }),
    binary("Mul", [](auto a, auto b) { return multiply(a, b); }),
    binary("Div", [](auto a, auto b) { return divide(a, b); }),
    binary(
        "DivTrunc",
        [](auto a, auto b) { return decltype(a)(std::trunc(divide(a, b))); }),
    binary("FloorDivide", [](auto a, auto b) { return floor_divide(a, b); }),
    binary("Remainder",
           [](auto a, auto b) {
             return subtract(a, multiply(floor_divide(a, b), b));
           }),
    binary("Pow", [](auto a, auto b) { return power(a, b); }),
    binary("Maximum", [](auto a, auto b) { return greater_of(a, b); }),
    binary("Minimum", [](auto a, auto b) { return lesser_of(a, b); }),
    binary("Eq", [](auto a, auto b) { return a == b; }),
    binary("Ne", [](auto a, auto b) { return a != b; }),
    binary("Lt", [](auto a, auto b) { return a < b; }),
    binary("Le", [](auto a, auto b) { return a <= b; }),
    binary("Gt", [](auto a, auto b) { return a > b; }),
    binary("Ge", [](auto a, auto b) { return a >= b; }),
    binary("LogicalAnd", [](auto a, auto b) { return a != 0 && b != 0; }),
    binary("LogicalOr", [](auto a, auto b) { return a != 0 || b != 0; }),
    binary("LogicalXor", [](auto a, auto b) { return (a != 0) != (b != 0); }),
    binary("And",
           [](auto a, auto b) { return std::int64_t(a) & std::int64_t(b); }),
    binary("Or",
           [](auto a, auto b) { return std::int64_t(a) | std::int64_t(b); }),
    binary("Xor",
           [](auto a, auto b) { return std::int64_t(a) ^ std::int64_t(b); }),
    ternary("Add",
            [](auto a, auto b, auto c) { return add(a, multiply(b, c)); }),
    ternary("Sub",
            [](auto a, auto b, auto c) { return subtract(a, multiply(b, c)); }),
    ternary("Rsub",
            [](auto a, auto b, auto c) { return subtract(b, multiply(a, c)); }),
    ternary("Where", [](auto a, auto b, auto c) { return a != 0 ? b : c; }),
    ternary("Clamp", [](auto a, auto b,
                        auto c) { return lesser_of(greater_of(a, b), c); }),
};

#undef ASCEND_SIM_FLOATING

const Function& function_of(const std::string& name, std::string_view wanted) {
  const auto* found = std::ranges::find(kFunctions, wanted, &Function::name);
  require(found != kFunctions.end(), name,
          "no function " + std::string(wanted));
  return *found;
}

template <class C>
C value_of(const Scalar& scalar) {
  if constexpr (kFloating<C>) return static_cast<C>(scalar.as_double());
  return static_cast<C>(scalar.as_int64());
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
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      block[i] = function(values[0][i], values[1][i], values[2][i]);
    }
    results.write(first, std::span<const C>(block).first(
                             static_cast<std::size_t>(count)));
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
    const auto both = broadcast(sizes, tensor->sizes);
    require(both.has_value(), name,
            "operands' sizes must broadcast, got " + text_of(sizes) + " and " +
                text_of(tensor->sizes));
    sizes = *both;
  }
  require_simulated(name, out);
  const auto fits = broadcast(sizes, out.sizes);
  require(fits && *fits == out.sizes, name,
          "the result's sizes must be " + text_of(sizes) + ", got " +
              text_of(out.sizes));
}

}  // namespace

Task elementwise(const std::string& name, std::string_view function,
                 std::vector<Operand> operands, const Tensor& out) {
  const Function& chosen = function_of(name, function);
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
