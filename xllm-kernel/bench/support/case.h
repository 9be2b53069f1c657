// What the cases of every operator are made of: shapes, and memory with values
// in it. Measures nothing; knows no operator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "xllm_kernel/core.h"

namespace xllm_kernel::bench {

struct Shape {
  std::int64_t rows;
  std::int64_t width;

  [[nodiscard]] std::string name() const {
    return std::to_string(rows) + "x" + std::to_string(width);
  }
};

[[nodiscard]] inline const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
  }
  return "unnamed";
}

// Of rows and their weight, the latter only where it differs.
[[nodiscard]] inline std::string dtypes_name(DType dtype, DType weight) {
  std::string name = dtype_name(dtype);
  if (weight != dtype) name += std::string("_by_") + dtype_name(weight);
  return name;
}

// A dense tensor at the start of a cache line, with magnitudes from 1 to 2 and
// both signs: repeated calls meet no subnormal, infinity or NaN. It keeps the
// arrays that its views point to, so it stays where it is.
class Tensor final {
 public:
  Tensor(DType dtype, Shape shape)
      : Tensor(dtype, {shape.rows, shape.width}, 2) {}
  // One dimension.
  Tensor(DType dtype, std::int64_t width) : Tensor(dtype, {width, 1}, 1) {}
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] TensorView view() const { return make<TensorView>(); }
  [[nodiscard]] MutableTensorView mutable_view() const {
    return make<MutableTensorView>();
  }

 private:
  static constexpr std::align_val_t kAlignment{64};

  struct Free {
    void operator()(std::byte* at) const { ::operator delete(at, kAlignment); }
  };

  Tensor(DType dtype, std::array<std::int64_t, 2> extents, std::size_t rank)
      : dtype_(dtype),
        extents_(extents),
        strides_(rank == 2 ? std::array{extents[1], std::int64_t{1}}
                           : std::array{std::int64_t{1}, std::int64_t{1}}),
        rank_(rank),
        bytes_(extents[0] * extents[1] * dtype_size(dtype)),
        memory_(static_cast<std::byte*>(
            ::operator new(static_cast<std::size_t>(bytes_), kAlignment))) {
    switch (dtype) {
      case DType::kFloat32:
        fill<std::uint32_t>(0x3f800000U, 0x807fffffU);
        break;
      case DType::kFloat16:
        fill<std::uint16_t>(0x3c00U, 0x83ffU);
        break;
      case DType::kBFloat16:
        fill<std::uint16_t>(0x3f80U, 0x807fU);
        break;
    }
  }

  // The bits of 1.0, and where chance decides: the sign and the mantissa.
  template <class Bits>
  void fill(std::uint32_t one, std::uint32_t random_bits) {
    auto* values = reinterpret_cast<Bits*>(memory_.get());
    const auto count = bytes_ / static_cast<std::int64_t>(sizeof(Bits));
    std::uint64_t state = 0x9e3779b97f4a7c15U;
    for (std::int64_t i = 0; i < count; ++i) {
      // Knuth's MMIX generator, whose upper half is random enough.
      state = state * 6364136223846793005U + 1442695040888963407U;
      values[i] = static_cast<Bits>(
          one | (static_cast<std::uint32_t>(state >> 32) & random_bits));
    }
  }

  template <class View>
  [[nodiscard]] View make() const {
    View view;
    if (View::make(memory_.get(), std::span(extents_).first(rank_),
                   std::span(strides_).first(rank_), dtype_,
                   &view) != Status::kOk) {
      std::abort();
    }
    return view;
  }

  DType dtype_;
  std::array<std::int64_t, 2> extents_;
  std::array<std::int64_t, 2> strides_;
  std::size_t rank_;
  std::int64_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace xllm_kernel::bench
