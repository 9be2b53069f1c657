// See functions.h. The table holds every function; nothing here knows which C
// symbols use it.
#include "operators/functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

namespace ascend_sim {
namespace {

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
    if (exponent < 0) {
      // The quotient 1 / base^-exponent, cut off.
      const C sign = exponent % 2 == 0 ? 1 : base;
      return base == 1 || base == -1 ? sign : 0;
    }
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
  if constexpr (kFloating<C>) {
    return std::isfinite(a);
  } else {
    return true;
  }
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
constexpr ElementFunction unary(std::string_view name, F) {
  return {name, 1,
          [](float a, float, float) { return static_cast<float>(F{}(a)); },
          [](double a, double, double) { return static_cast<double>(F{}(a)); },
          [](std::int64_t a, std::int64_t, std::int64_t) {
            return static_cast<std::int64_t>(F{}(a));
          }};
}

template <class F>
constexpr ElementFunction binary(std::string_view name, F) {
  return {
      name, 2,
      [](float a, float b, float) { return static_cast<float>(F{}(a, b)); },
      [](double a, double b, double) { return static_cast<double>(F{}(a, b)); },
      [](std::int64_t a, std::int64_t b, std::int64_t) {
        return static_cast<std::int64_t>(F{}(a, b));
      }};
}

template <class F>
constexpr ElementFunction ternary(std::string_view name, F) {
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

}  // namespace

const ElementFunction* find_function(std::string_view name) {
  const auto* found =
      std::ranges::find(kFunctions, name, &ElementFunction::name);
  return found == kFunctions.end() ? nullptr : found;
}

}  // namespace ascend_sim
