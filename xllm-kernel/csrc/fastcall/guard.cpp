// The guards themselves. Each costs a load and a comparison where it can, for
// together they are most of what a short call pays.
#include "fastcall/guard.h"

#include <ATen/EmptyTensor.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace xllm_kernel::fastcall {

namespace {

constexpr c10::DispatchKeySet kIncluded = c10::default_included_set;
constexpr c10::DispatchKeySet kExcluded = c10::default_excluded_set;
// As c10::InferenceMode sets them.
constexpr c10::DispatchKeySet kInferenceIncluded =
    kIncluded.remove(c10::DispatchKey::ADInplaceOrView);
constexpr c10::DispatchKeySet kInferenceExcluded =
    kExcluded | c10::autograd_dispatch_keyset;

// Written once, while the module is made.
c10::DispatchKeySet plain_keys;
c10::DispatchKeySet inference_keys;

bool needs_derivative(const at::TensorBase& tensor) {
  const c10::AutogradMetaInterface* meta =
      tensor.unsafeGetTensorImpl()->autograd_meta();
  if (meta == nullptr) return false;
  if (meta->requires_grad() && c10::GradMode::is_enabled()) return true;
  // Forward mode has no key and no switch that grad mode would turn off.
  return meta->fw_grad(0, tensor).defined();
}

template <class View>
Status make_view_at(typename View::Void* base, const at::TensorBase& tensor,
                    DType dtype, View* view) {
  const c10::IntArrayRef sizes = tensor.sizes();
  const c10::IntArrayRef strides = tensor.strides();
  return View::make(base, {sizes.data(), sizes.size()},
                    {strides.data(), strides.size()}, dtype, view);
}

}  // namespace

std::size_t Signature::count() const noexcept {
  std::size_t count = 0;
  while (count < kMaxParameters && names[count] != nullptr) ++count;
  return count;
}

bool Signature::intern() noexcept {
  for (std::size_t n = 0; n < count(); ++n) {
    if (interned[n] != nullptr) continue;
    interned[n] = PyUnicode_InternFromString(names[n]);
    if (interned[n] == nullptr) return false;
  }
  return true;
}

PyObject* const* arguments(const Signature& signature, PyObject* const* values,
                           Py_ssize_t positional, PyObject* keywords,
                           std::array<PyObject*, kMaxParameters>* scratch) {
  const auto given = static_cast<std::size_t>(positional);
  const std::size_t count = signature.count();
  if (keywords == nullptr) return given == count ? values : nullptr;
  const auto named = static_cast<std::size_t>(PyTuple_GET_SIZE(keywords));
  if (given + named != count) return nullptr;
  std::size_t n = 0;
  for (; n < given; ++n) (*scratch)[n] = values[n];
  for (; n < count; ++n) (*scratch)[n] = nullptr;
  // As many values as places: none left empty means none filled twice.
  for (std::size_t k = 0; k < named; ++k) {
    PyObject* const name =
        PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(k));
    for (std::size_t place = given; place < count; ++place) {
      if (signature.interned[place] == name) {
        (*scratch)[place] = values[given + k];
      }
    }
  }
  for (n = given; n < count; ++n) {
    if ((*scratch)[n] == nullptr) return nullptr;
  }
  return scratch->data();
}

bool is_plain_thread() noexcept {
  const c10::impl::LocalDispatchKeySet keys =
      c10::impl::tls_local_dispatch_key_set();
  const bool eager = keys.included_ == kIncluded && keys.excluded_ == kExcluded;
  const bool inference = keys.included_ == kInferenceIncluded &&
                         keys.excluded_ == kInferenceExcluded;
  return (eager || inference) && !at::impl::torch_function_mode_enabled() &&
         !at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION)
              .has_value();
}

const at::Tensor* plain_tensor(PyObject* object) noexcept {
  if (!THPVariable_CheckExact(object)) return nullptr;
  const at::Tensor& tensor = THPVariable_Unpack(object);
  const c10::DispatchKeySet keys = tensor.key_set();
  if (keys != plain_keys && keys != inference_keys) return nullptr;
  return needs_derivative(tensor) ? nullptr : &tensor;
}

bool kernel_dtype(at::ScalarType type, DType* dtype) noexcept {
  switch (type) {
    case at::ScalarType::BFloat16:
      *dtype = DType::kBFloat16;
      return true;
    case at::ScalarType::Half:
      *dtype = DType::kFloat16;
      return true;
    case at::ScalarType::Float:
      *dtype = DType::kFloat32;
      return true;
    default:
      return false;
  }
}

Status make_view(const at::TensorBase& tensor, DType dtype, TensorView* view) {
  return make_view_at(tensor.const_data_ptr(), tensor, dtype, view);
}

Status make_view(const at::TensorBase& tensor, DType dtype,
                 MutableTensorView* view) {
  return make_view_at(tensor.mutable_data_ptr(), tensor, dtype, view);
}

void learn_plain_keys() {
  const auto keys = [](bool inference) {
    const c10::InferenceMode mode(inference);
    return at::detail::empty_cpu({1}, at::ScalarType::Float).key_set();
  };
  plain_keys = keys(false);
  inference_keys = keys(true);
}

Entry* Entry::first_ = nullptr;

Entry::Entry(const char* name, FastCall call, Signature* signature) noexcept
    : method_{.ml_name = name,
              .ml_meth = reinterpret_cast<PyCFunction>(
                  reinterpret_cast<void (*)()>(call)),
              .ml_flags = METH_FASTCALL | METH_KEYWORDS,
              .ml_doc = nullptr},
      signature_(signature),
      next_(first_) {
  first_ = this;
}

}  // namespace xllm_kernel::fastcall
