// A residual addition and the RMS normalisation of its result, over the last
// dimension. Plain memory in, plain memory out: no torch, no Python, no
// allocation.
#pragma once

#include "xllm_kernel/core.h"
#include "xllm_kernel/export.h"
#include "xllm_kernel/threads.h"

namespace xllm_kernel {

// sum = input + residual; output = sum / sqrt(mean(sum^2) + eps) * weight.
//
// Numerics. The addition is done in fp32 and rounded to the dtype once, to
// nearest even; that is what `sum` receives and what the norm reads. From there
// on the numerics are those of rms_norm.h, element by element and lane by lane,
// so that output has the bits that rms_norm(sum) has. Subnormals are kept, and
// a NaN becomes the positive quiet NaN without payload, in both results. A
// row's bits depend on that row of input and residual, the weight and eps
// alone.
//
// A sum over the dtype's range is an infinity; it and a NaN then act on their
// row as in rms_norm.
//
// Domain. input, weight and eps as in rms_norm.h. residual: input's extents and
// dtype, last stride 1. output and sum: likewise, their rows apart from each
// other.
//
// Memory. `output` may be `input` itself and `sum` may be `residual` itself:
// same base, extents and strides. Both at once is the in-place form. Any other
// overlap of output or sum with each other or with what is read is refused.
// input, residual and weight, where only read, may share memory.
//
// No rows is fine. Returns kOk, or the first thing that does not hold; then
// nothing was written.
[[nodiscard]] XLLM_KERNEL_API Status fused_add_rms_norm(
    const MutableTensorView& output, const MutableTensorView& sum,
    const TensorView& input, const TensorView& residual,
    const TensorView& weight, double eps, const Threads& threads = {}) noexcept;

}  // namespace xllm_kernel
