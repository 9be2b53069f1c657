// The table of simulated kernels.
// A kernel that is not here fails at its launch, by name.
#include "launchers/kernel.h"

#include <algorithm>
#include <array>

#include "launchers/kernels/norm.h"

namespace ascend_sim {
namespace {

constexpr std::array<Kernel, 2> kKernels = {{
    {"norm_bfloat16_t", kNormBlockBytes, &plan_norm_bfloat16},
    {"norm_float16_t", kNormBlockBytes, &plan_norm_float16},
}};

// More runs than that cost more to check than their gaps are worth.
constexpr std::uint64_t kMaxRuns = 1024;

}  // namespace

std::span<const Kernel> simulated_kernels() { return kKernels; }

std::vector<Access> access_rows(Address first, std::uint64_t rows,
                                std::uint64_t step, std::uint64_t bytes,
                                AccessKind kind) {
  if (rows == 0) {
    return {};
  }
  const std::uint64_t reach = (rows - 1) * step + bytes;
  if (step <= bytes || rows > kMaxRuns) {
    return {{first, reach, kind}};
  }
  std::vector<Access> accesses;
  accesses.reserve(rows);
  for (std::uint64_t row = 0; row < rows; ++row) {
    accesses.push_back({first + row * step, bytes, kind});
  }
  return accesses;
}

}  // namespace ascend_sim
