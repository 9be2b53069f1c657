// Descriptions of tensors, drawn from a fuzzer's bytes: mostly ones that an
// operator takes, each part now and then one that it must refuse. No memory.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdint>
#include <limits>
#include <string>

#include "support/formats.h"
#include "support/tensor.h"
#include "xllm_kernel/core.h"

namespace xllm_kernel::fuzz {

using test::Extents;

// What a view is made of, and where it lies: `shift` bytes from the origin of a
// memory, which it may share with tensors drawn before it.
struct Shape {
  std::string role;
  DType dtype = DType::kFloat32;
  Extents extents;
  Extents strides;
  std::size_t memory = 0;
  std::int64_t shift = 0;
};

// Whatever comes of it is a stride or an extent to try: far values wrap.
[[nodiscard]] constexpr std::int64_t wrapped_sum(std::int64_t a,
                                                 std::int64_t b) noexcept {
  std::int64_t result = 0;
  static_cast<void>(__builtin_add_overflow(a, b, &result));
  return result;
}
[[nodiscard]] constexpr std::int64_t wrapped_product(std::int64_t a,
                                                     std::int64_t b) noexcept {
  std::int64_t result = 0;
  static_cast<void>(__builtin_mul_overflow(a, b, &result));
  return result;
}

// Draws from the bytes, and 0s where they end.
class Draw final {
 public:
  Draw(const std::uint8_t* bytes, std::size_t size) : from_(bytes, size) {}

  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high) {
    return from_.ConsumeIntegralInRange(low, high);
  }
  [[nodiscard]] bool one_in(int times) { return between(0, times - 1) == 1; }
  template <class Item, std::size_t kCount>
  [[nodiscard]] Item of(const Item (&items)[kCount]) {
    return from_.PickValueInArray(items);
  }

  // Any, the fourth being none.
  [[nodiscard]] DType dtype() {
    constexpr std::int64_t kNone = 3;
    return static_cast<DType>(one_in(64) ? kNone : between(0, kNone - 1));
  }

  // Mostly a few short rows; sometimes enough for several threads, too many
  // elements to exist, or none.
  [[nodiscard]] Extents extents() {
    Extents result;
    const std::int64_t leading = of({1, 1, 1, 2, 2, 3, 0});
    for (std::int64_t axis = 0; axis < leading; ++axis) {
      result.push_back(between(1, 5));
    }
    result.push_back(one_in(4) ? between(1, 300) : of(kWidths));
    if (leading > 0 && one_in(48)) result[0] = between(300, 1500);
    if (one_in(24)) result[place_in(result)] = of(kStrangeExtents);
    if (one_in(128)) result.clear();
    return result;
  }

  [[nodiscard]] Extents strides(const Extents& extents) {
    Extents result(extents.size(), 1);
    for (std::size_t axis = extents.size(); axis-- > 1;) {
      result[axis - 1] = wrapped_product(
          result[axis], std::max<std::int64_t>(extents[axis], 1));
    }
    // Rows further apart, mirrored, repeated; then what nobody expects.
    if (extents.size() > 1) {
      if (one_in(3)) {
        const std::int64_t factor = between(1, 3);
        const std::int64_t more = between(0, 65);
        for (std::size_t axis = 0; axis + 1 < extents.size(); ++axis) {
          result[axis] =
              wrapped_sum(wrapped_product(result[axis], factor), more);
        }
      }
      if (one_in(4)) {
        std::int64_t& stride = result[place_before_last(extents)];
        stride = wrapped_product(stride, -1);
      }
      if (one_in(8)) result[place_before_last(extents)] = 0;
      if (one_in(8)) {
        std::swap(result[place_before_last(extents)],
                  result[place_before_last(extents)]);
      }
      if (one_in(12)) {
        result[place_before_last(extents)] = between(-400, 400);
      }
    }
    if (!extents.empty() && one_in(24)) {
      result[place_in(extents)] = of(kStrangeStrides);
    }
    if (one_in(128)) result.push_back(1);
    return result;
  }

  [[nodiscard]] Shape rows(const char* role) {
    Shape shape{.role = role, .dtype = dtype(), .extents = extents()};
    shape.strides = strides(shape.extents);
    return shape;
  }

  // As a model, or unlike it in one thing.
  [[nodiscard]] Shape like(const Shape& model, const char* role) {
    Shape shape{.role = role, .dtype = model.dtype, .extents = model.extents};
    if (one_in(32)) shape.dtype = dtype();
    if (one_in(32)) shape.extents = extents();
    if (one_in(32) && !shape.extents.empty()) {
      std::int64_t& extent = shape.extents[place_in(shape.extents)];
      extent = wrapped_sum(extent, between(-1, 1));
    }
    shape.strides = strides(shape.extents);
    return shape;
  }

  [[nodiscard]] Shape weight_of(const Shape& model) {
    const std::int64_t width = model.extents.empty() ? 1 : model.extents.back();
    Shape shape{.role = "weight", .dtype = model.dtype, .extents = {width}};
    if (one_in(3)) shape.dtype = DType::kFloat32;
    if (one_in(32)) shape.dtype = dtype();
    if (one_in(48)) shape.extents = extents();
    if (one_in(48) && !shape.extents.empty()) {
      shape.extents[0] = wrapped_sum(shape.extents[0], 1);
    }
    shape.strides = strides(shape.extents);
    return shape;
  }

  static void lay_exactly_on(const Shape& other, Shape* shape) {
    shape->memory = other.memory;
    shape->shift = other.shift;
    shape->strides = other.strides;
  }

  // Puts `shape` where `other` lies: onto it, into it, or against its end.
  void lay_upon(const Shape& other, Shape* shape) {
    shape->memory = other.memory;
    shape->shift = other.shift;
    if (one_in(2)) shape->strides = other.strides;
    if (one_in(2)) return;
    const std::int64_t size = dtype_size(shape->dtype);
    std::int64_t elements = 1;
    for (const std::int64_t extent : other.extents) {
      if (extent > 0 && extent < 100'000) elements *= extent;
    }
    shape->shift += of({std::int64_t{-1}, std::int64_t{1}, elements - 1,
                        elements, -elements, between(-100, 100)}) *
                    size;
    if (one_in(32)) shape->shift += 1;
  }

  [[nodiscard]] double eps() {
    constexpr double kMax = std::numeric_limits<float>::max();
    return of({1e-6, 1e-5, 1e-12, 0.0, 0.0, 1.0, 1e-40, 1e-60, 1e30, kMax,
               kMax * 1.01, -0.0, -1e-9,
               std::numeric_limits<double>::infinity(),
               std::numeric_limits<double>::quiet_NaN()});
  }

 private:
  static constexpr std::int64_t kMost =
      std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kLeast =
      std::numeric_limits<std::int64_t>::min();
  // Around every vector's and block's end.
  static constexpr std::int64_t kWidths[] = {1,  2,  7,  8,   9,   15,  16,
                                             17, 31, 32, 33,  63,  64,  65,
                                             95, 96, 97, 127, 128, 129, 192};
  static constexpr std::int64_t kStrangeExtents[] = {
      0, 0, -1, 1LL << 20, 1LL << 31, 1LL << 40, kMost, kMost / 2, kLeast};
  static constexpr std::int64_t kStrangeStrides[] = {
      0,         2,         -1,    1LL << 20, -(1LL << 31), 1LL << 33,
      1LL << 61, kMost / 2, kMost, kLeast,    kLeast + 1};

  [[nodiscard]] std::size_t place_in(const Extents& extents) {
    return static_cast<std::size_t>(
        between(0, static_cast<std::int64_t>(extents.size()) - 1));
  }
  [[nodiscard]] std::size_t place_before_last(const Extents& extents) {
    return static_cast<std::size_t>(
        between(0, static_cast<std::int64_t>(extents.size()) - 2));
  }

  FuzzedDataProvider from_;
};

}  // namespace xllm_kernel::fuzz
