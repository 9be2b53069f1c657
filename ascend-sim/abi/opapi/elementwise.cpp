// The aclnn functions that compute element by element, and those that fill.
// Names operators; computes nothing.
#include "operators/elementwise.h"

#include "abi/opapi/phases.h"

namespace {

using ascend_sim::Operand;
using ascend_sim::Scalar;
using ascend_sim::abi::given;
using ascend_sim::abi::prepare;

// What the first phase of every function here does once it has its operands.
template <class... Operands>
aclnnStatus prepare_elementwise(const char* name, const char* function,
                                std::uint64_t* workspace_bytes,
                                aclOpExecutor** executor, const aclTensor* out,
                                Operands... operands) {
  return prepare(name, workspace_bytes, executor, [&] {
    return ascend_sim::elementwise(
        name, function, std::vector<Operand>{given(operands)...}, given(out));
  });
}

constexpr aclScalar kOne{Scalar{std::int64_t{1}, ascend_sim::DType::kInt64}};
constexpr aclScalar kZero{Scalar{std::int64_t{0}, ascend_sim::DType::kInt64}};

// By DivMod's rounding mode.
const char* quotient_of(int mode) {
  constexpr const char* kFunctions[] = {"Div", "DivTrunc", "FloorDivide"};
  return mode >= 0 && mode <= 2 ? kFunctions[mode] : "with a rounding mode";
}

}  // namespace

// One macro for each list of operands that CANN's prototypes have. NAME is the
// operator's, FUNCTION the one of the table in operators/elementwise.cpp.

#define ASCEND_SIM_FIRST_PHASE(NAME, ...)                      \
  ASCEND_SIM_EXPORT aclnnStatus aclnn##NAME##GetWorkspaceSize( \
      __VA_ARGS__, std::uint64_t* bytes, aclOpExecutor** executor)

#define ASCEND_SIM_UNARY(NAME, FUNCTION)                                      \
  ASCEND_SIM_FIRST_PHASE(NAME, const aclTensor* self, aclTensor* out) {       \
    return prepare_elementwise("aclnn" #NAME, FUNCTION, bytes, executor, out, \
                               self);                                         \
  }                                                                           \
  ASCEND_SIM_EXECUTE(NAME)

#define ASCEND_SIM_INPLACE_UNARY(NAME, FUNCTION)                               \
  ASCEND_SIM_FIRST_PHASE(NAME, aclTensor* self) {                              \
    return prepare_elementwise("aclnn" #NAME, FUNCTION, bytes, executor, self, \
                               self);                                          \
  }                                                                            \
  ASCEND_SIM_EXECUTE(NAME)

#define ASCEND_SIM_BINARY(NAME, FUNCTION, OTHER)                              \
  ASCEND_SIM_FIRST_PHASE(NAME, const aclTensor* self, const OTHER* other,     \
                         aclTensor* out) {                                    \
    return prepare_elementwise("aclnn" #NAME, FUNCTION, bytes, executor, out, \
                               self, other);                                  \
  }                                                                           \
  ASCEND_SIM_EXECUTE(NAME)

#define ASCEND_SIM_INPLACE_BINARY(NAME, FUNCTION, OTHER)                       \
  ASCEND_SIM_FIRST_PHASE(NAME, aclTensor* self, const OTHER* other) {          \
    return prepare_elementwise("aclnn" #NAME, FUNCTION, bytes, executor, self, \
                               self, other);                                   \
  }                                                                            \
  ASCEND_SIM_EXECUTE(NAME)

// With alpha, which multiplies one of the operands.
#define ASCEND_SIM_SCALED(NAME, FUNCTION, OTHER)                              \
  ASCEND_SIM_FIRST_PHASE(NAME, const aclTensor* self, const OTHER* other,     \
                         const aclScalar* alpha, aclTensor* out) {            \
    return prepare_elementwise("aclnn" #NAME, FUNCTION, bytes, executor, out, \
                               self, other, alpha);                           \
  }                                                                           \
  ASCEND_SIM_EXECUTE(NAME)

#define ASCEND_SIM_INPLACE_SCALED(NAME, FUNCTION, OTHER)                       \
  ASCEND_SIM_FIRST_PHASE(NAME, aclTensor* self, const OTHER* other,            \
                         const aclScalar* alpha) {                             \
    return prepare_elementwise("aclnn" #NAME, FUNCTION, bytes, executor, self, \
                               self, other, alpha);                            \
  }                                                                            \
  ASCEND_SIM_EXECUTE(NAME)

ASCEND_SIM_UNARY(Abs, "Abs")
ASCEND_SIM_UNARY(Neg, "Neg")
ASCEND_SIM_UNARY(Sign, "Sign")
ASCEND_SIM_UNARY(Relu, "Relu")
ASCEND_SIM_UNARY(Sqrt, "Sqrt")
ASCEND_SIM_UNARY(Rsqrt, "Rsqrt")
ASCEND_SIM_UNARY(Reciprocal, "Reciprocal")
ASCEND_SIM_UNARY(Exp, "Exp")
ASCEND_SIM_UNARY(Log, "Log")
ASCEND_SIM_UNARY(Log10, "Log10")
ASCEND_SIM_UNARY(Log2, "Log2")
ASCEND_SIM_UNARY(Sin, "Sin")
ASCEND_SIM_UNARY(Cos, "Cos")
ASCEND_SIM_UNARY(Tanh, "Tanh")
ASCEND_SIM_UNARY(Sigmoid, "Sigmoid")
ASCEND_SIM_UNARY(Silu, "Silu")
ASCEND_SIM_UNARY(Ceil, "Ceil")
ASCEND_SIM_UNARY(Floor, "Floor")
ASCEND_SIM_UNARY(Trunc, "Trunc")
ASCEND_SIM_UNARY(Round, "Round")
ASCEND_SIM_UNARY(IsFinite, "IsFinite")
ASCEND_SIM_UNARY(IsPosInf, "IsPosInf")
ASCEND_SIM_UNARY(IsNegInf, "IsNegInf")
ASCEND_SIM_UNARY(LogicalNot, "LogicalNot")

ASCEND_SIM_INPLACE_UNARY(InplaceRelu, "Relu")
ASCEND_SIM_INPLACE_UNARY(InplaceSqrt, "Sqrt")
ASCEND_SIM_INPLACE_UNARY(InplaceRsqrt, "Rsqrt")
ASCEND_SIM_INPLACE_UNARY(InplaceReciprocal, "Reciprocal")
ASCEND_SIM_INPLACE_UNARY(InplaceExp, "Exp")
ASCEND_SIM_INPLACE_UNARY(InplaceCeil, "Ceil")
ASCEND_SIM_INPLACE_UNARY(InplaceFloor, "Floor")
ASCEND_SIM_INPLACE_UNARY(InplaceLogicalNot, "LogicalNot")

ASCEND_SIM_SCALED(Add, "Add", aclTensor)
ASCEND_SIM_SCALED(Adds, "Add", aclScalar)
ASCEND_SIM_SCALED(Sub, "Sub", aclTensor)
ASCEND_SIM_SCALED(Subs, "Sub", aclScalar)
ASCEND_SIM_SCALED(Rsub, "Rsub", aclTensor)
ASCEND_SIM_SCALED(Rsubs, "Rsub", aclScalar)
ASCEND_SIM_INPLACE_SCALED(InplaceAdd, "Add", aclTensor)
ASCEND_SIM_INPLACE_SCALED(InplaceAdds, "Add", aclScalar)
ASCEND_SIM_INPLACE_SCALED(InplaceSub, "Sub", aclTensor)
ASCEND_SIM_INPLACE_SCALED(InplaceSubs, "Sub", aclScalar)

ASCEND_SIM_BINARY(Mul, "Mul", aclTensor)
ASCEND_SIM_BINARY(Muls, "Mul", aclScalar)
ASCEND_SIM_BINARY(Div, "Div", aclTensor)
ASCEND_SIM_BINARY(Divs, "Div", aclScalar)
ASCEND_SIM_BINARY(FloorDivide, "FloorDivide", aclTensor)
ASCEND_SIM_BINARY(FloorDivides, "FloorDivide", aclScalar)
ASCEND_SIM_BINARY(RemainderTensorTensor, "Remainder", aclTensor)
ASCEND_SIM_BINARY(RemainderTensorScalar, "Remainder", aclScalar)
ASCEND_SIM_BINARY(PowTensorTensor, "Pow", aclTensor)
ASCEND_SIM_BINARY(PowTensorScalar, "Pow", aclScalar)
ASCEND_SIM_BINARY(Maximum, "Maximum", aclTensor)
ASCEND_SIM_BINARY(Minimum, "Minimum", aclTensor)
ASCEND_SIM_BINARY(ClampMin, "Maximum", aclScalar)
ASCEND_SIM_BINARY(ClampMax, "Minimum", aclScalar)
ASCEND_SIM_BINARY(EqTensor, "Eq", aclTensor)
ASCEND_SIM_BINARY(EqScalar, "Eq", aclScalar)
ASCEND_SIM_BINARY(NeTensor, "Ne", aclTensor)
ASCEND_SIM_BINARY(NeScalar, "Ne", aclScalar)
ASCEND_SIM_BINARY(LtTensor, "Lt", aclTensor)
ASCEND_SIM_BINARY(LtScalar, "Lt", aclScalar)
ASCEND_SIM_BINARY(LeTensor, "Le", aclTensor)
ASCEND_SIM_BINARY(LeScalar, "Le", aclScalar)
ASCEND_SIM_BINARY(GtTensor, "Gt", aclTensor)
ASCEND_SIM_BINARY(GtScalar, "Gt", aclScalar)
ASCEND_SIM_BINARY(GeTensor, "Ge", aclTensor)
ASCEND_SIM_BINARY(GeScalar, "Ge", aclScalar)
ASCEND_SIM_BINARY(LogicalAnd, "LogicalAnd", aclTensor)
ASCEND_SIM_BINARY(LogicalOr, "LogicalOr", aclTensor)
ASCEND_SIM_BINARY(LogicalXor, "LogicalXor", aclTensor)
ASCEND_SIM_BINARY(BitwiseAndTensor, "And", aclTensor)
ASCEND_SIM_BINARY(BitwiseAndScalar, "And", aclScalar)
ASCEND_SIM_BINARY(BitwiseOrTensor, "Or", aclTensor)
ASCEND_SIM_BINARY(BitwiseOrScalar, "Or", aclScalar)
ASCEND_SIM_BINARY(BitwiseXorTensor, "Xor", aclTensor)
ASCEND_SIM_BINARY(BitwiseXorScalar, "Xor", aclScalar)

ASCEND_SIM_INPLACE_BINARY(InplaceMul, "Mul", aclTensor)
ASCEND_SIM_INPLACE_BINARY(InplaceMuls, "Mul", aclScalar)
ASCEND_SIM_INPLACE_BINARY(InplaceDiv, "Div", aclTensor)
ASCEND_SIM_INPLACE_BINARY(InplaceDivs, "Div", aclScalar)
ASCEND_SIM_INPLACE_BINARY(InplacePowTensorScalar, "Pow", aclScalar)
ASCEND_SIM_INPLACE_BINARY(InplaceBitwiseAndTensor, "And", aclTensor)
ASCEND_SIM_INPLACE_BINARY(InplaceLogicalAnd, "LogicalAnd", aclTensor)
ASCEND_SIM_INPLACE_BINARY(InplaceLogicalOr, "LogicalOr", aclTensor)

// Those with a list of operands of their own.

ASCEND_SIM_FIRST_PHASE(BitwiseNot, const aclTensor* self, aclTensor* out) {
  return prepare("aclnnBitwiseNot", bytes, executor, [&] {
    return ascend_sim::bitwise_not("aclnnBitwiseNot", given(self), given(out));
  });
}
ASCEND_SIM_EXECUTE(BitwiseNot)

ASCEND_SIM_FIRST_PHASE(Cast, const aclTensor* self, aclDataType /*dtype*/,
                       aclTensor* out) {
  return prepare("aclnnCast", bytes, executor, [&] {
    return ascend_sim::copy("aclnnCast", given(self), given(out));
  });
}
ASCEND_SIM_EXECUTE(Cast)

ASCEND_SIM_FIRST_PHASE(InplaceCopy, aclTensor* self, const aclTensor* from) {
  return prepare("aclnnInplaceCopy", bytes, executor, [&] {
    return ascend_sim::copy("aclnnInplaceCopy", given(from), given(self));
  });
}
ASCEND_SIM_EXECUTE(InplaceCopy)

ASCEND_SIM_FIRST_PHASE(InplaceOne, aclTensor* self) {
  return prepare_elementwise("aclnnInplaceOne", "Identity", bytes, executor,
                             self, &kOne);
}
ASCEND_SIM_EXECUTE(InplaceOne)

ASCEND_SIM_FIRST_PHASE(InplaceZero, aclTensor* self) {
  return prepare_elementwise("aclnnInplaceZero", "Identity", bytes, executor,
                             self, &kZero);
}
ASCEND_SIM_EXECUTE(InplaceZero)

ASCEND_SIM_FIRST_PHASE(InplaceFillScalar, aclTensor* self,
                       const aclScalar* value) {
  return prepare_elementwise("aclnnInplaceFillScalar", "Identity", bytes,
                             executor, self, value);
}
ASCEND_SIM_EXECUTE(InplaceFillScalar)

ASCEND_SIM_FIRST_PHASE(InplaceFillTensor, aclTensor* self,
                       const aclTensor* value) {
  return prepare_elementwise("aclnnInplaceFillTensor", "Identity", bytes,
                             executor, self, value);
}
ASCEND_SIM_EXECUTE(InplaceFillTensor)

ASCEND_SIM_FIRST_PHASE(SWhere, const aclTensor* condition,
                       const aclTensor* self, const aclTensor* other,
                       aclTensor* out) {
  return prepare_elementwise("aclnnSWhere", "Where", bytes, executor, out,
                             condition, self, other);
}
ASCEND_SIM_EXECUTE(SWhere)

// A bound that is missing bounds nothing.
ASCEND_SIM_FIRST_PHASE(Clamp, const aclTensor* self, const aclScalar* least,
                       const aclScalar* most, aclTensor* out) {
  if (least == nullptr) {
    return prepare_elementwise("aclnnClamp", "Minimum", bytes, executor, out,
                               self, most);
  }
  if (most == nullptr) {
    return prepare_elementwise("aclnnClamp", "Maximum", bytes, executor, out,
                               self, least);
  }
  return prepare_elementwise("aclnnClamp", "Clamp", bytes, executor, out, self,
                             least, most);
}
ASCEND_SIM_EXECUTE(Clamp)

// How a quotient is rounded: 0 not at all, 1 towards 0, 2 down.
ASCEND_SIM_FIRST_PHASE(DivMod, const aclTensor* self, const aclTensor* other,
                       int mode, aclTensor* out) {
  return prepare_elementwise("aclnnDivMod", quotient_of(mode), bytes, executor,
                             out, self, other);
}
ASCEND_SIM_EXECUTE(DivMod)

ASCEND_SIM_FIRST_PHASE(DivMods, const aclTensor* self, const aclScalar* other,
                       int mode, aclTensor* out) {
  return prepare_elementwise("aclnnDivMods", quotient_of(mode), bytes, executor,
                             out, self, other);
}
ASCEND_SIM_EXECUTE(DivMods)

ASCEND_SIM_FIRST_PHASE(InplaceMaskedFillScalar, aclTensor* self,
                       const aclTensor* mask, const aclScalar* value) {
  return prepare_elementwise("aclnnInplaceMaskedFillScalar", "Where", bytes,
                             executor, self, mask, value, self);
}
ASCEND_SIM_EXECUTE(InplaceMaskedFillScalar)
