// The clauses of a domain as bridges check them, word for word those of
// python/xllm_kernel/clauses.py. Names roles of arguments, no operator.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "torch/csrc/stable/tensor.h"
#include "torch/domain.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::bridge {

// A tensor argument under its name; both must outlive it.
struct Operand {
  Operand(std::string_view named, const torch::stable::Tensor& given)
      : name(named), tensor(given), facts(given) {}

  [[nodiscard]] std::string named(std::string_view suffix) const {
    return std::string(name).append(suffix);
  }

  std::string_view name;
  const torch::stable::Tensor& tensor;
  TensorFacts facts;
};

// What the kernels are chosen by.
struct RowDTypes {
  DType rows;
  DType weight;
};

// Checks for one implementation; each throws where its clause does not hold.
// Each may rely on those that a domain lists before it.
class Clauses final {
 public:
  explicit Clauses(const Implementation& implementation)
      : implementation_(implementation) {}

  // The operand, unless it is no tensor: Python's None gets this far.
  [[nodiscard]] Operand operand(std::string_view name,
                                const torch::stable::Tensor& given) const;

  void at_least_one_dimension(const Operand& of) const;
  void exactly_one_dimension(const Operand& of) const;
  // One of the dtypes that the kernels have.
  [[nodiscard]] DType kernel_dtype(const Operand& of) const;
  void same_dtype(const Operand& of, const Operand& other) const;
  void same_dtype_or_float32(const Operand& of, const Operand& other) const;
  void same_shape(const Operand& of, const Operand& other) const;
  // Last extents.
  void some_width(const Operand& of) const;
  void same_width(const Operand& of, const Operand& other) const;
  void on_cpu(const Operand& of) const;
  void same_device(const Operand& of, const Operand& other) const;
  void unit_stride(const Operand& of) const;
  void rows_apart(const Operand& of) const;
  void apart(const Operand& of, const Operand& other) const;
  // From 0 to the largest float32.
  void not_negative_float32(std::string_view name, double value) const;
  // The last clause of a tensor that is written: counts the write, too.
  void writable(const Operand& of) const;

  // The clauses that every operator on rows with a weight begins with.
  [[nodiscard]] RowDTypes rows_and_weight(const Operand& input,
                                          const Operand& weight) const;

  // Only a fault of a bridge gets here: the clauses imply what the kernels ask.
  void require_ok(Status status) const;

 private:
  Implementation implementation_;
};

}  // namespace xllm_kernel::bridge
