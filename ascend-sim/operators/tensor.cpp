// See tensor.h.
#include "operators/tensor.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ascend_sim {
namespace {

// Beyond this many, checking runs one by one would take longer than the
// operator.
constexpr std::int64_t kMostRuns = 1024;

struct Dimension {
  std::int64_t size = 0;
  std::int64_t stride = 0;
};

// Those that move the address, from the smallest step to the largest.
std::vector<Dimension> steps_of(const Tensor& tensor) {
  std::vector<Dimension> steps;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] > 1 && tensor.strides[i] != 0) {
      steps.push_back({tensor.sizes[i], tensor.strides[i]});
    }
  }
  std::ranges::sort(steps, {}, &Dimension::stride);
  return steps;
}

}  // namespace

std::int64_t Tensor::count() const { return count_of(sizes); }

double Scalar::as_double() const {
  return std::visit([](auto v) { return static_cast<double>(v); }, value);
}

std::int64_t Scalar::as_int64() const {
  return std::visit([](auto v) { return static_cast<std::int64_t>(v); }, value);
}

std::int64_t count_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1},
                         std::multiplies<>());
}

std::string text_of(const Sizes& sizes) {
  std::string text = "[";
  for (const std::int64_t size : sizes) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

Tensor expand(const Tensor& tensor, const Sizes& sizes) {
  Tensor out = tensor;
  out.sizes = sizes;
  out.strides.assign(sizes.size(), 0);
  for (std::size_t back = 1; back <= tensor.sizes.size(); ++back) {
    const std::size_t from = tensor.sizes.size() - back;
    const std::size_t to = sizes.size() - back;
    out.strides[to] = tensor.sizes[from] == 1 ? 0 : tensor.strides[from];
  }
  return out;
}

Tensor as_bits(const Tensor& tensor) {
  Tensor out = tensor;
  out.dtype = bits_of(tensor.dtype);
  return out;
}

Tensor select(const Tensor& tensor, std::int64_t dimension,
              std::int64_t index) {
  Tensor out = tensor;
  const auto at = static_cast<std::ptrdiff_t>(dimension);
  out.address += static_cast<Address>(index * tensor.strides[dimension]) *
                 size_of(tensor.dtype);
  out.sizes.erase(out.sizes.begin() + at);
  out.strides.erase(out.strides.begin() + at);
  return out;
}

Tensor permute(const Tensor& tensor, const Sizes& order) {
  Tensor out = tensor;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<std::size_t>(order[i]);
    out.sizes[i] = tensor.sizes[from];
    out.strides[i] = tensor.strides[from];
  }
  return out;
}

void declare(Task& task, const Tensor& tensor, AccessKind kind) {
  task.notes.emplace_back(
      "operand " + std::to_string(task.notes.size()),
      std::string(kind == AccessKind::kRead ? "reads " : "writes ") +
          name_of(tensor.dtype) + " " + text_of(tensor.sizes) + " by " +
          text_of(tensor.strides));
  if (tensor.count() == 0) return;
  const std::size_t item = size_of(tensor.dtype);
  std::vector<Dimension> steps = steps_of(tensor);
  // What steps by as much as one run is long, makes the run longer.
  std::int64_t run = 1;
  auto outer = steps.begin();
  while (outer != steps.end() && outer->stride == run) {
    run *= outer->size;
    ++outer;
  }
  steps.erase(steps.begin(), outer);

  std::int64_t runs = 1;
  std::int64_t reach = run;
  for (const Dimension& step : steps) {
    runs = std::min(runs * step.size, kMostRuns + 1);
    reach += (step.size - 1) * step.stride;
  }
  if (runs > kMostRuns) {
    task.accesses.push_back(
        {tensor.address, static_cast<std::size_t>(reach) * item, kind});
    return;
  }
  for (std::int64_t i = 0; i < runs; ++i) {
    std::int64_t rest = i;
    std::int64_t offset = 0;
    for (const Dimension& step : steps) {
      offset += rest % step.size * step.stride;
      rest /= step.size;
    }
    task.accesses.push_back(
        {tensor.address + static_cast<Address>(offset) * item,
         static_cast<std::size_t>(run) * item, kind});
  }
}

}  // namespace ascend_sim
