// The clauses of a device's domain as bridges check them, word for word those
// of python/xllm_kernel/clauses.py. Names roles of arguments, no operator.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "torch/refusal.h"

namespace xllm_kernel::xlite {

// A tensor argument under its name; both must outlive it.
struct Operand {
  [[nodiscard]] std::string named(std::string_view suffix) const {
    return std::string(name).append(suffix);
  }

  std::string_view name;
  const at::Tensor& tensor;
};

// Checks for one implementation; each throws where its clause does not hold.
// Each may rely on those that a domain lists before it.
class Clauses final {
 public:
  explicit Clauses(const bridge::Implementation& implementation)
      : implementation_(implementation) {}

  // Any tensor, of which no derivative is wanted; Python's None gets this far.
  void tensor(const Operand& of) const;
  void at_least_one_dimension(const Operand& of) const;
  void exactly_one_dimension(const Operand& of) const;
  // One of the dtypes that launchers have.
  void half_precision(const Operand& of) const;
  void same_dtype(const Operand& of, const Operand& other) const;
  // Last extents: whole vectors, as many as the cores' buffers hold.
  void width_in_vectors(const Operand& of) const;
  void same_width(const Operand& of, const Operand& other) const;
  void on_npu(const Operand& of) const;
  void same_device(const Operand& of, const Operand& other) const;
  // Stored row by row, not in one of the device's private formats.
  void plain_format(const Operand& of) const;
  // What 32 bits count: elements, and to where the rows reach.
  void countable(const Operand& of) const;
  // From 0 to the largest float32.
  void not_negative_float32(std::string_view name, double value) const;
  // Not of an argument: the processor is one that launchers have kernels for.
  void supported_processor() const;

  // The clauses that every operator on rows with a weight begins with.
  void rows_and_weight(const Operand& input, const Operand& weight) const;

 private:
  [[noreturn]] void refuse(const std::string& sentence,
                           std::string_view clause) const {
    bridge::refuse(implementation_, sentence, clause);
  }

  bridge::Implementation implementation_;
};

}  // namespace xllm_kernel::xlite
