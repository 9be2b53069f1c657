// Makes each call whose instructions are counted, once, and prints its name:
// instructions.py runs such a program under callgrind and pairs both. Knows no
// operator.
#pragma once

#include <array>
#include <cstdio>
#include <utility>

#include "support/case.h"
#include "support/counted_region.h"

namespace xllm_kernel::bench {

// Small, so that all of them take seconds; two end inside a vector, and two
// have a group of narrow rows.
inline constexpr std::array kCountedShapes = {Shape{1, 512}, Shape{3, 6144},
                                              Shape{3, 100}, Shape{5, 1023},
                                              Shape{9, 512}};

// Of rows and their weight.
inline constexpr std::array kCountedDTypes = {
    std::pair{DType::kFloat32, DType::kFloat32},
    std::pair{DType::kFloat16, DType::kFloat16},
    std::pair{DType::kBFloat16, DType::kBFloat16},
    std::pair{DType::kBFloat16, DType::kFloat32}};

// Calls the public function, on the level that XLLM_KERNEL_SIMD_LEVEL forces.
// Returns what main() does.
template <class Case>
int run_counted(const char* operation) {
  for (const auto& [dtype, weight] : kCountedDTypes) {
    for (const Shape& shape : kCountedShapes) {
      const Case of(dtype, weight, shape);
      const auto call = [](const void* at) noexcept {
        return static_cast<const Case*>(at)->run_public();
      };
      // The first call also decides on level and kernel, once a process.
      Status status = call(&of);
      if (status == Status::kOk) status = xllm_kernel_counted_region(call, &of);
      if (status != Status::kOk) {
        std::fprintf(stderr, "%s: %s\n", operation, status_message(status));
        return 1;
      }
      std::printf("%s/%s/%s/%s\n", operation, simd_level().name,
                  dtypes_name(dtype, weight).c_str(), shape.name().c_str());
    }
  }
  return 0;
}

}  // namespace xllm_kernel::bench
