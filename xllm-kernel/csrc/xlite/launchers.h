// The launchers that this solution calls: xlite's wheel ships none of their
// prototypes. A launcher returns 0 for success, and also where its library
// could not register its kernels; then it has written nothing.
#pragma once

#include <acl/acl.h>

#include <cstdint>

namespace xllm_kernel::xlite {

// Which norm a launcher computes.
enum class NormKind : int { kRootMeanSquare = 0, kLayer = 1, kL2 = 2 };

// Steps and starts count elements, from one token to the next and to the first;
// a kernel adds them in 32 bits. A token holds `norms_a_token` rows of `width`,
// one after another. Offsets scale with the library's dtype. The last argument
// exists from GVirt 4a6dc3102d57 on: without it the symbol is the same, and the
// kernel reads whatever lies there.
using NormLauncher = std::uint32_t(
    std::uint32_t blocks, aclrtStream stream, void* input, void* added,
    void* weight, void* bias, void* output, std::uint32_t tokens,
    std::uint32_t width, float eps, int kind, std::uint32_t norms_a_token,
    std::uint32_t input_step, std::uint32_t output_step,
    std::uint32_t input_start, std::uint32_t output_start, bool normalises,
    void* variance, std::uint32_t variance_parts, bool float32_output);

}  // namespace xllm_kernel::xlite

extern "C" {
xllm_kernel::xlite::NormLauncher aclrtlaunch_norm_bfloat16_t;
xllm_kernel::xlite::NormLauncher aclrtlaunch_norm_float16_t;
}
