// A tensor in guarded memory, addressed in plain index arithmetic of its own.
// For tests only; knows no operator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "formats.h"
#include "guarded.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::test {

using Extents = std::vector<std::int64_t>;

inline Extents dense_strides(const Extents& extents) {
  Extents strides(extents.size(), 1);
  for (std::size_t axis = extents.size(); axis-- > 1;) {
    strides[axis - 1] =
        strides[axis] * std::max<std::int64_t>(extents[axis], 1);
  }
  return strides;
}

class Tensor final {
 public:
  Tensor(const Format& format, const Extents& extents,
         Flush flush = Flush::kBack)
      : Tensor(format, extents, dense_strides(extents), flush) {}

  // Strides count elements and are not negative.
  Tensor(const Format& format, Extents extents, Extents strides,
         Flush flush = Flush::kBack)
      : format_(format),
        extents_(std::move(extents)),
        strides_(std::move(strides)),
        memory_(std::make_unique<Guarded>(bytes_needed(), flush)) {}

  [[nodiscard]] const Format& format() const { return format_; }
  [[nodiscard]] std::int64_t width() const { return extents_.back(); }
  [[nodiscard]] std::int64_t rows() const {
    return std::accumulate(extents_.begin(), extents_.end() - 1,
                           std::int64_t{1}, std::multiplies<>());
  }
  [[nodiscard]] Guarded& memory() const { return *memory_; }

  [[nodiscard]] std::uint32_t bits(std::int64_t row,
                                   std::int64_t column) const {
    std::uint32_t value = 0;
    std::memcpy(&value, at(row, column),
                static_cast<std::size_t>(format_.size));
    return value;
  }
  void set_bits(std::int64_t row, std::int64_t column, std::uint32_t value) {
    std::memcpy(at(row, column), &value,
                static_cast<std::size_t>(format_.size));
  }
  [[nodiscard]] double get(std::int64_t row, std::int64_t column) const {
    return format_.decode(bits(row, column));
  }
  void set(std::int64_t row, std::int64_t column, double value) {
    set_bits(row, column, format_.encode(value));
  }
  // Calls `value(row, column)` for every element.
  template <class Function>
  void fill(Function value) {
    for (std::int64_t row = 0; row < rows(); ++row) {
      for (std::int64_t column = 0; column < width(); ++column) {
        set(row, column, value(row, column));
      }
    }
  }
  // Everything, gaps between rows included.
  [[nodiscard]] std::vector<std::byte> snapshot() const {
    return {memory_->data(), memory_->data() + memory_->bytes()};
  }

  [[nodiscard]] TensorView view() const { return make<TensorView>(); }
  [[nodiscard]] MutableTensorView mutable_view() {
    return make<MutableTensorView>();
  }

 private:
  template <class View>
  [[nodiscard]] View make() const {
    View view;
    if (View::make(memory_->data(), extents_, strides_, format_.dtype, &view) !=
        Status::kOk) {
      std::abort();
    }
    return view;
  }

  [[nodiscard]] std::size_t bytes_needed() const {
    std::int64_t last = 0;
    for (std::size_t axis = 0; axis < extents_.size(); ++axis) {
      if (extents_[axis] == 0) return 0;
      last += (extents_[axis] - 1) * strides_[axis];
    }
    return static_cast<std::size_t>((last + 1) * format_.size);
  }

  [[nodiscard]] std::byte* at(std::int64_t row, std::int64_t column) const {
    std::int64_t index = column * strides_.back();
    for (std::size_t axis = extents_.size() - 1; axis-- > 0;) {
      index += row % extents_[axis] * strides_[axis];
      row /= extents_[axis];
    }
    return memory_->data() + index * format_.size;
  }

  Format format_;
  Extents extents_;
  Extents strides_;
  std::unique_ptr<Guarded> memory_;
};

template <class Function>
Tensor filled(const Format& format, const Extents& extents, Function value) {
  Tensor tensor(format, extents);
  tensor.fill(value);
  return tensor;
}

}  // namespace xllm_kernel::test
