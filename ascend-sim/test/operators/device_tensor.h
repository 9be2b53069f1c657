// Tensors of the simulated device for the operators' tests: made from host
// values, read back as host values. Computes nothing.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operators/operand.h"
#include "operators/tensor.h"
#include "runtime/runtime.h"

namespace ascend_sim::test {

// T is the type that stores an element: uint16_t for the 16-bit floating types,
// uint8_t for bool.
template <class T>
class DeviceTensor final {
 public:
  DeviceTensor(DType dtype, Sizes sizes, const std::vector<T>& values)
      : count_(values.size()) {
    EXPECT_EQ(size_of(dtype), sizeof(T));
    EXPECT_EQ(static_cast<std::size_t>(count_of(sizes)), values.size());
    // An empty tensor has an address too.
    const std::size_t bytes =
        std::max<std::size_t>(values.size(), 1) * sizeof(T);
    EXPECT_EQ(Runtime::get().allocate(bytes, &view_.address), Status::kOk);
    view_.dtype = dtype;
    view_.sizes = std::move(sizes);
    view_.strides.resize(view_.sizes.size());
    std::int64_t stride = 1;
    for (std::size_t d = view_.sizes.size(); d-- > 0;) {
      view_.strides[d] = stride;
      stride *= view_.sizes[d];
    }
    view_.found = std::make_shared<Sizes>(view_.sizes);
    if (!values.empty()) {
      EXPECT_EQ(Runtime::get().copy(pointer(), values.data(), bytes),
                Status::kOk);
    }
  }
  ~DeviceTensor() {
    EXPECT_EQ(Runtime::get().free(view_.address), Status::kOk);
  }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;

  [[nodiscard]] const Tensor& view() const { return view_; }
  // The same memory with other sizes and strides.
  [[nodiscard]] Tensor view(Sizes sizes, Sizes strides,
                            std::int64_t offset = 0) const {
    Tensor out = view_;
    out.sizes = std::move(sizes);
    out.strides = std::move(strides);
    out.address += static_cast<Address>(offset) * sizeof(T);
    return out;
  }
  // The memory's elements in their order.
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> out(count_);
    if (count_ > 0) {
      EXPECT_EQ(Runtime::get().copy(out.data(), pointer(), count_ * sizeof(T)),
                Status::kOk);
    }
    return out;
  }

 private:
  [[nodiscard]] void* pointer() const {
    return reinterpret_cast<void*>(view_.address);
  }

  std::size_t count_ = 0;
  Tensor view_;
};

using Floats = DeviceTensor<float>;
using Halves = DeviceTensor<std::uint16_t>;
using Longs = DeviceTensor<std::int64_t>;
using Bools = DeviceTensor<std::uint8_t>;

[[nodiscard]] inline Sizes flat(std::size_t count) {
  return {static_cast<std::int64_t>(count)};
}

[[nodiscard]] inline std::vector<std::uint16_t> bfloat16s(
    const std::vector<float>& values) {
  std::vector<std::uint16_t> out;
  out.reserve(values.size());
  for (const float value : values) out.push_back(bfloat16_from(value));
  return out;
}

// Runs the task on a stream as a program would, and waits.
inline void run(Task task) {
  Runtime& runtime = Runtime::get();
  Stream* const stream = runtime.default_stream();
  ASSERT_EQ(runtime.submit(stream, std::move(task)), Status::kOk);
  ASSERT_EQ(runtime.synchronize(stream, std::nullopt), Status::kOk);
}

// What an operator says that refuses its operands.
template <class Make>
[[nodiscard]] std::string refusal(Make&& make) {
  try {
    (void)make();
  } catch (const OperandError& error) {
    EXPECT_EQ(error.status(), kBadOperand);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

}  // namespace ascend_sim::test
