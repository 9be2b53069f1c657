// How operators refuse operands that the vendor's would refuse. Corrects none.
#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>

#include "operators/tensor.h"
#include "runtime/status.h"

namespace ascend_sim {

// As CANN's aclnn functions return them.
inline constexpr Status kNullOperand{161001};
inline constexpr Status kBadOperand{161002};

class OperandError final : public std::runtime_error {
 public:
  OperandError(Status status, const std::string& what)
      : std::runtime_error(what), status_(status) {}
  [[nodiscard]] Status status() const { return status_; }

 private:
  Status status_;
};

// Says who refuses and what must hold; the caller adds what was seen.
inline void require(bool holds, const std::string& name,
                    const std::string& what) {
  if (!holds) throw OperandError(kBadOperand, name + ": " + what);
}

void require_simulated(const std::string& name, const Tensor& tensor);
void require_sizes(const std::string& name, const std::string& operand,
                   const Tensor& tensor, const Sizes& sizes);
void require_dtype(const std::string& name, const std::string& operand,
                   const Tensor& tensor, std::initializer_list<DType> allowed);
// The sizes that two operands take together.
[[nodiscard]] Sizes broadcast_sizes(const std::string& name, const Sizes& one,
                                    const Sizes& other);
// The dimension counted from the front.
[[nodiscard]] std::int64_t dimension_of(const std::string& name,
                                        std::int64_t dimension,
                                        std::int64_t rank);

}  // namespace ascend_sim
