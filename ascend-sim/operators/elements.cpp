// See elements.h.
#include "operators/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "runtime/runtime.h"

namespace ascend_sim {
namespace {

struct Bfloat16 {
  std::uint16_t bits;
};
struct Float16 {
  std::uint16_t bits;
};

template <class C, class Stored>
C widen(Stored value) {
  if constexpr (std::is_same_v<Stored, Bfloat16>) {
    return static_cast<C>(from_bfloat16(value.bits));
  } else if constexpr (std::is_same_v<Stored, Float16>) {
    return static_cast<C>(from_float16(value.bits));
  } else {
    return static_cast<C>(value);
  }
}

template <class Integer, class Floating>
Integer saturate(Floating value) {
  if (std::isnan(value)) return 0;
  // 2^digits is exact in every floating type, the largest integer is not.
  const Floating beyond =
      std::ldexp(Floating{1}, std::numeric_limits<Integer>::digits);
  if (value >= beyond) return std::numeric_limits<Integer>::max();
  const auto least = static_cast<Floating>(std::numeric_limits<Integer>::min());
  if (value <= least) return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(value);
}

template <class Stored, class C>
Stored narrow(C value) {
  if constexpr (std::is_same_v<Stored, bool>) {
    return value != 0;
  } else if constexpr (std::is_same_v<Stored, Bfloat16>) {
    return {bfloat16_from(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<Stored, Float16>) {
    return {float16_from(static_cast<float>(value))};
  } else if constexpr (std::is_integral_v<Stored> &&
                       std::is_floating_point_v<C>) {
    return saturate<Stored>(value);
  } else {
    return static_cast<Stored>(value);
  }
}

// Calls with a value of the C++ type that holds the dtype.
template <class Call>
void with_type(DType dtype, Call&& call) {
  switch (dtype) {
    case DType::kFloat32:
      return call(float{});
    case DType::kFloat16:
      return call(Float16{});
    case DType::kInt8:
      return call(std::int8_t{});
    case DType::kInt32:
      return call(std::int32_t{});
    case DType::kUint8:
      return call(std::uint8_t{});
    case DType::kInt16:
      return call(std::int16_t{});
    case DType::kInt64:
      return call(std::int64_t{});
    case DType::kFloat64:
      return call(double{});
    case DType::kBool:
      return call(bool{});
    case DType::kBfloat16:
      return call(Bfloat16{});
  }
}

// Memory has no type yet: bytes are copied, and a bool is any byte but 0.
template <class Stored>
Stored fetch(const std::byte* from) {
  if constexpr (std::is_same_v<Stored, bool>) {
    return *from != std::byte{0};
  } else {
    Stored value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
}

}  // namespace

template <class C>
template <class Visit>
void Elements<C>::for_each_run(std::int64_t first, std::int64_t count,
                               Visit&& visit) const {
  const std::size_t rank = tensor_.sizes.size();
  if (rank == 0) {
    visit(std::int64_t{0}, std::int64_t{0}, count);
    return;
  }
  const std::int64_t inner = tensor_.sizes[rank - 1];
  while (count > 0) {
    std::int64_t rest = first / inner;
    std::int64_t offset = first % inner * tensor_.strides[rank - 1];
    for (std::size_t d = rank - 1; d-- > 0;) {
      offset += rest % tensor_.sizes[d] * tensor_.strides[d];
      rest /= tensor_.sizes[d];
    }
    const std::int64_t run = std::min(count, inner - first % inner);
    visit(offset, tensor_.strides[rank - 1], run);
    first += run;
    count -= run;
  }
}

template <class C>
void Elements<C>::read(std::int64_t first, std::span<C> to) const {
  const std::byte* base = Runtime::get().shadow(tensor_.address);
  with_type(tensor_.dtype, [&]<class Stored>(Stored) {
    std::size_t next = 0;
    for_each_run(
        first, static_cast<std::int64_t>(to.size()),
        [&](std::int64_t offset, std::int64_t stride, std::int64_t run) {
          constexpr auto kItem = static_cast<std::int64_t>(sizeof(Stored));
          const std::byte* from = base + offset * kItem;
          for (std::int64_t i = 0; i < run; ++i) {
            to[next++] = widen<C>(fetch<Stored>(from + i * stride * kItem));
          }
        });
  });
}

template <class C>
void Elements<C>::write(std::int64_t first, std::span<const C> from) const {
  std::byte* base = Runtime::get().shadow(tensor_.address);
  with_type(tensor_.dtype, [&]<class Stored>(Stored) {
    std::size_t next = 0;
    for_each_run(
        first, static_cast<std::int64_t>(from.size()),
        [&](std::int64_t offset, std::int64_t stride, std::int64_t run) {
          constexpr auto kItem = static_cast<std::int64_t>(sizeof(Stored));
          std::byte* to = base + offset * kItem;
          for (std::int64_t i = 0; i < run; ++i) {
            const auto value = narrow<Stored>(from[next++]);
            std::memcpy(to + i * stride * kItem, &value, sizeof value);
          }
        });
  });
}

template <class C>
std::vector<C> Elements<C>::read_all() const {
  std::vector<C> all(static_cast<std::size_t>(tensor_.count()));
  read(0, all);
  return all;
}

template class Elements<float>;
template class Elements<double>;
template class Elements<std::int64_t>;

}  // namespace ascend_sim
