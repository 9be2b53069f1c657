// A C++ host's first calls: views over its own memory, two operators, and what
// a refusal looks like. Checks the results against plain loops in double.
#include <xllm_kernel/core.h>
#include <xllm_kernel/fused_add_rms_norm.h>
#include <xllm_kernel/rms_norm.h>
#include <xllm_kernel/version.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace xk = xllm_kernel;

namespace {

constexpr std::int64_t kRows = 3;
constexpr std::int64_t kWidth = 1024;
constexpr double kEps = 1e-6;
constexpr xk::DType kType = xk::DType::kFloat32;

// A view keeps pointers to its extents and strides, so these must live as long
// as the views do. Strides count elements.
constexpr std::array<std::int64_t, 2> kExtents = {kRows, kWidth};
constexpr std::array<std::int64_t, 2> kStrides = {kWidth, 1};
constexpr std::array<std::int64_t, 1> kWeightExtents = {kWidth};
constexpr std::array<std::int64_t, 1> kWeightStrides = {1};

// Half a unit in the last place of 1 in fp32: what one rounding can cost.
constexpr double kRounding = 1.0 / (1 << 24);
// A lane of the sum of squares takes kWidth / 64 roundings and the tree over 64
// lanes 6; all terms are positive, so errors do not grow beyond that. Division
// and addition of eps round too, and the square root halves all of it. Root,
// reciprocal and two products round once each. Doubled for what this drops.
constexpr double kTolerance = 2 * ((kWidth / 64.0 + 6 + 2) / 2 + 4) * kRounding;

// No function throws: one that can refuse returns a Status, which a host turns
// into its own kind of error. This one gives up.
void require_ok(const char* what, xk::Status status) {
  if (status == xk::Status::kOk) return;
  std::printf("%s: %s\n", what, xk::status_message(status));
  std::exit(1);
}

// Views own nothing. They are checked once, when they are made.
xk::TensorView read_matrix(const std::vector<float>& values) {
  xk::TensorView view;
  require_ok("a matrix", xk::TensorView::make(values.data(), kExtents, kStrides,
                                              kType, &view));
  return view;
}

xk::MutableTensorView write_matrix(std::vector<float>& values) {
  xk::MutableTensorView view;
  require_ok("a result", xk::MutableTensorView::make(values.data(), kExtents,
                                                     kStrides, kType, &view));
  return view;
}

xk::TensorView read_weight(const std::vector<float>& values) {
  xk::TensorView view;
  require_ok("a weight", xk::TensorView::make(values.data(), kWeightExtents,
                                              kWeightStrides, kType, &view));
  return view;
}

// Numbers between -1 and 1 that differ from one to the next.
std::vector<float> numbers(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(seed >> 8) / float{1 << 23} - 1.0F;
  }
  return values;
}

// Compares with x / sqrt(mean(x^2) + eps) * weight, computed in double.
bool check_norm(const char* what, const std::vector<float>& output,
                const std::vector<float>& x, const std::vector<float>& weight) {
  int wrong = 0;
  for (std::size_t start = 0; start < x.size(); start += kWidth) {
    double squares = 0;
    for (std::size_t i = 0; i < kWidth; ++i) {
      squares += double{x[start + i]} * double{x[start + i]};
    }
    const double root = std::sqrt(squares / kWidth + kEps);
    for (std::size_t i = 0; i < kWidth; ++i) {
      const double expected = double{x[start + i]} / root * double{weight[i]};
      const double error = std::abs(double{output[start + i]} - expected);
      // Written so that a NaN counts as wrong.
      if (!(error <= kTolerance * std::abs(expected))) ++wrong;
    }
  }
  std::printf("%s: %zu values, %d off by more than %.1e of their size\n", what,
              x.size(), wrong, kTolerance);
  return wrong == 0;
}

// Ask for the level while preparing: it is decided at the first call, and an
// unusable XLLM_KERNEL_SIMD_LEVEL is better reported here than in a request.
void print_level() {
  const xk::SimdLevel& level = xk::simd_level();
  if (level.status != xk::Status::kOk) {
    std::printf("%s\n", level.message);
    std::exit(1);
  }
  std::printf("xllm-kernel %s, SIMD level %s\n", xk::version(), level.name);
}

bool run_rms_norm(const std::vector<float>& input,
                  const std::vector<float>& weight) {
  std::vector<float> output(input.size());
  // On the library's own threads, if the work is worth any; a host with a pool
  // lends it instead, by xk::Threads::host().
  require_ok("rms_norm",
             xk::rms_norm(write_matrix(output), read_matrix(input),
                          read_weight(weight), kEps, xk::Threads::own()));
  return check_norm("rms_norm", output, input, weight);
}

// The residual stream of a transformer: sum = input + residual, and the norm of
// that sum.
bool run_fused_add(const std::vector<float>& input,
                   const std::vector<float>& residual,
                   const std::vector<float>& weight) {
  std::vector<float> output(input.size());
  std::vector<float> sum(input.size());
  require_ok("fused_add_rms_norm",
             xk::fused_add_rms_norm(write_matrix(output), write_matrix(sum),
                                    read_matrix(input), read_matrix(residual),
                                    read_weight(weight), kEps));
  int wrong = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    // One addition has one right result.
    if (sum[i] != input[i] + residual[i]) ++wrong;
  }
  std::printf("fused_add_rms_norm: %d sums wrong\n", wrong);
  return check_norm("fused_add_rms_norm", output, sum, weight) && wrong == 0;
}

// A weight has one dimension. This one has two, so nothing is written, and the
// status says what must hold.
bool run_refused(const std::vector<float>& input) {
  std::vector<float> output(input.size());
  const xk::TensorView x = read_matrix(input);
  const xk::Status status = xk::rms_norm(write_matrix(output), x, x, kEps);
  std::printf("a matrix for a weight: %s\n", xk::status_message(status));
  return status == xk::Status::kWeightRank;
}

}  // namespace

int main() {
  print_level();
  const std::vector<float> input = numbers(kRows * kWidth, 1);
  const std::vector<float> residual = numbers(kRows * kWidth, 2);
  const std::vector<float> weight = numbers(kWidth, 3);
  const bool right = run_rms_norm(input, weight) &&
                     run_fused_add(input, residual, weight) &&
                     run_refused(input);
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
