// Makes the call that each line of standard input describes through the C++
// API, and writes what it returned. Judges nothing: whoever wrote the lines
// compares.
//
// A line: an operation, eps, the number of tensors, and for each tensor in the
// order of the operation's Python arguments: dtype, memory, offset in elements,
// rank, extents, strides. Tensors of one memory share it. The answer: the
// status's name, after the tensor's number where no view could be made of it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/tensor.h"
#include "xllm_kernel/core.h"
#include "xllm_kernel/fused_add_rms_norm.h"
#include "xllm_kernel/rms_norm.h"

namespace xllm_kernel::test {
namespace {

#define NAME(status)   \
  case Status::status: \
    return #status

std::string_view name_of(Status status) {
  switch (status) {
    NAME(kOk);
    NAME(kNullPointer);
    NAME(kRankMismatch);
    NAME(kNegativeExtent);
    NAME(kExtentOverflow);
    NAME(kMisaligned);
    NAME(kUnknownDType);
    NAME(kUnknownLevel);
    NAME(kUnavailableLevel);
    NAME(kInputRank);
    NAME(kInputWidth);
    NAME(kInputStride);
    NAME(kWeightRank);
    NAME(kWeightDType);
    NAME(kWeightWidth);
    NAME(kWeightStride);
    NAME(kEps);
    NAME(kOutputShape);
    NAME(kOutputDType);
    NAME(kOutputStride);
    NAME(kOutputOverlap);
    NAME(kResidualShape);
    NAME(kResidualDType);
    NAME(kResidualStride);
    NAME(kSumShape);
    NAME(kSumDType);
    NAME(kSumStride);
    NAME(kOutputAlias);
    NAME(kSumAlias);
  }
  return "unknown";
}

#undef NAME

DType dtype_of(std::string_view name) {
  if (name == "float32") return DType::kFloat32;
  if (name == "float16") return DType::kFloat16;
  if (name == "bfloat16") return DType::kBFloat16;
  return static_cast<DType>(3);  // none of the enumeration
}

struct Described {
  DType dtype = DType::kFloat32;
  int memory = 0;
  std::int64_t offset = 0;
  Extents extents;
  Extents strides;

  // Elements from the memory's start to past the last that is touched.
  [[nodiscard]] std::int64_t reach() const {
    std::int64_t last = 0;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      if (extents[axis] == 0) return offset;
      last += (extents[axis] - 1) * strides[axis];
    }
    return offset + last + 1;
  }
};

// Of what is no dtype, too, so that its base is not null.
std::int64_t size_of(DType dtype) {
  return std::max<std::int64_t>(dtype_size(dtype), 1);
}

[[noreturn]] void give_up(const std::string& line) {
  std::fprintf(stderr, "refusals: no such line: %s\n", line.c_str());
  std::exit(2);
}

class Call final {
 public:
  explicit Call(const std::string& line) {
    std::istringstream from(line);
    std::string eps;
    std::size_t count = 0;
    from >> operation_ >> eps >> count;
    eps_ = std::strtod(eps.c_str(), nullptr);
    for (std::size_t n = 0; n < count; ++n) tensors_.push_back(read(from));
    if (!from || tensors_.size() < 2) give_up(line);
    for (const Described& tensor : tensors_) {
      const auto bytes =
          static_cast<std::size_t>(tensor.reach() * size_of(tensor.dtype));
      auto& memory = memories_[tensor.memory];
      // Whole units of the widest element, so that every base is aligned.
      memory.resize(std::max(memory.size(), bytes / sizeof(double) + 1));
    }
  }

  std::string answer() {
    if (operation_ == "rms_norm") {
      return with_views<2>([this](const auto& given) {
        const Fresh output(given[0]);
        return rms_norm(output.view, given[0], given[1], eps_);
      });
    }
    if (operation_ == "rms_norm_out") {
      return with_views<3>([this](const auto& given) {
        return rms_norm(written(0), given[1], given[2], eps_);
      });
    }
    if (operation_ == "fused_add_rms_norm") {
      return with_views<3>([this](const auto& given) {
        const Fresh output(given[0]);
        const Fresh sum(given[0]);
        return fused_add_rms_norm(output.view, sum.view, given[0], given[1],
                                  given[2], eps_);
      });
    }
    if (operation_ == "fused_add_rms_norm_inplace") {
      return with_views<3>([this](const auto& given) {
        return fused_add_rms_norm(written(0), written(1), given[0], given[1],
                                  given[2], eps_);
      });
    }
    give_up(operation_);
  }

 private:
  // A dense tensor like another.
  struct Fresh {
    explicit Fresh(const TensorView& like) {
      for (std::size_t axis = 0; axis < like.rank(); ++axis) {
        extents.push_back(like.extent(axis));
      }
      strides = dense_strides(extents);
      memory.resize(static_cast<std::size_t>(like.elements()) + 1);
      static_cast<void>(MutableTensorView::make(memory.data(), extents, strides,
                                                like.dtype(), &view));
    }

    Extents extents;
    Extents strides;
    std::vector<float> memory;
    MutableTensorView view;
  };

  static Described read(std::istream& from) {
    Described tensor;
    std::string dtype;
    std::size_t rank = 0;
    from >> dtype >> tensor.memory >> tensor.offset >> rank;
    tensor.dtype = dtype_of(dtype);
    tensor.extents.resize(rank);
    tensor.strides.resize(rank);
    for (std::int64_t& extent : tensor.extents) from >> extent;
    for (std::int64_t& stride : tensor.strides) from >> stride;
    return tensor;
  }

  std::byte* base_of(const Described& tensor) {
    auto* const start =
        reinterpret_cast<std::byte*>(memories_[tensor.memory].data());
    return start + tensor.offset * size_of(tensor.dtype);
  }

  template <class View>
  Status make(std::size_t number, View* view) {
    const Described& tensor = tensors_.at(number);
    return View::make(base_of(tensor), tensor.extents, tensor.strides,
                      tensor.dtype, view);
  }

  MutableTensorView written(std::size_t number) {
    MutableTensorView view;
    static_cast<void>(make(number, &view));
    return view;
  }

  template <std::size_t kCount, class Run>
  std::string with_views(const Run& run) {
    std::array<TensorView, kCount> views;
    for (std::size_t n = 0; n < kCount; ++n) {
      const Status status = make(n, &views[n]);
      if (status == Status::kOk) continue;
      return std::to_string(n) + " " + std::string(name_of(status));
    }
    return std::string(name_of(run(views)));
  }

  std::string operation_;
  double eps_ = 0;
  std::vector<Described> tensors_;
  std::map<int, std::vector<double>> memories_;
};

}  // namespace
}  // namespace xllm_kernel::test

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    // Flushed: whoever asked waits for the answer.
    std::cout << xllm_kernel::test::Call(line).answer() << "\n" << std::flush;
  }
}
