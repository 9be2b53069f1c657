// The refusal itself, in the words of python/xllm_kernel/derivatives.py, which
// does the same where this library is not built.
#include "fastcall/derivatives.h"

#include <ATen/core/stack.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace xllm_kernel::fastcall {

namespace {

// Nearest to the caller, it sees what lower kernels do not: the wrappers of
// torch.func, which are peeled off below.
class Refusal final : public c10::OperatorKernel {
 public:
  explicit Refusal(std::string who) : who_(std::move(who)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    const std::vector<c10::Argument>& arguments = op.schema().arguments();
    const auto given = torch::jit::last(*stack, arguments.size());
    for (std::size_t n = 0; n < arguments.size(); ++n) {
      if (given[n].isTensor()) check(arguments[n].name(), given[n].toTensor());
    }
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
  }

 private:
  void check(const std::string& name, const at::Tensor& tensor) const {
    const c10::AutogradMetaInterface* meta =
        tensor.defined() ? tensor.unsafeGetTensorImpl()->autograd_meta()
                         : nullptr;
    if (meta == nullptr) return;
    if (c10::GradMode::is_enabled() && meta->requires_grad()) {
      throw std::runtime_error(
          who_ + ": " + name +
          " must not require a gradient in grad mode, for there is no "
          "backward; call it under torch.no_grad() (clause " +
          name + ".gradient)");
    }
    if (c10::AutogradState::get_tls_state().get_fw_grad_mode() &&
        meta->fw_grad(0, tensor).defined()) {
      throw std::runtime_error(
          who_ + ": " + name +
          " must not carry a tangent, for there is no forward derivative; "
          "pass the primal alone (clause " +
          name + ".tangent)");
    }
  }

  std::string who_;
};

}  // namespace

void refuse_derivatives(const std::string& name, const std::string& who) {
  // A registration lives as long as its library object, and must outlive every
  // static object that may still call operators.
  static auto& libraries = *new std::vector<std::unique_ptr<torch::Library>>;
  auto library = std::make_unique<torch::Library>(
      torch::Library::IMPL, "xllm_kernel", c10::DispatchKey::Autograd, __FILE__,
      __LINE__);
  library->impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor<Refusal>(
                                  std::make_unique<Refusal>(who)));
  libraries.push_back(std::move(library));
}

}  // namespace xllm_kernel::fastcall
