// Looks at each tensor once. Refuses by saying no: the operator has the words.
#include "fastcall/operands.h"

#include <c10/core/InferenceMode.h>

namespace xllm_kernel::fastcall {

bool Read::from(PyObject* object) {
  tensor = plain_tensor(object);
  DType dtype{};
  return tensor != nullptr && kernel_dtype(tensor->scalar_type(), &dtype) &&
         make_view(*tensor, dtype, &view) == Status::kOk;
}

bool Written::from(PyObject* object) {
  tensor = plain_tensor(object);
  DType dtype{};
  if (tensor == nullptr || !kernel_dtype(tensor->scalar_type(), &dtype)) {
    return false;
  }
  // Outside of inference mode, nobody may write to a tensor made in it.
  if (tensor->is_inference() && !c10::InferenceMode::is_enabled()) return false;
  return make_view(*tensor, dtype, &view) == Status::kOk &&
         make_view(*tensor, dtype, &read) == Status::kOk;
}

void Written::count() const {
  if (!tensor->is_inference()) tensor->unsafeGetTensorImpl()->bump_version();
}

bool Fresh::like(const Read& model) {
  tensor =
      at::detail::empty_cpu(model.tensor->sizes(), model.tensor->scalar_type());
  return make_view(tensor, model.view.dtype(), &view) == Status::kOk;
}

}  // namespace xllm_kernel::fastcall
