// RMS normalisation over the last dimension, with a weight. Plain memory in,
// plain memory out: no torch, no Python, no allocation.
#pragma once

#include "xllm_kernel/core.h"
#include "xllm_kernel/export.h"
#include "xllm_kernel/threads.h"

namespace xllm_kernel {

// output = input / sqrt(mean(input^2) + eps) * weight, the mean over the last
// dimension.
//
// Numerics. Elements are widened to fp32, exactly. Element i is added to
// logical lane i % 64 by a fused multiply-add, in order of i; the 64 lanes are
// summed by halving (lane k with lane k + 32, then k + 16, ... k + 1). With s
// that sum, r = 1 / sqrt(s / width + fp32(eps)) and y = (x * r) * weight, every
// step rounded to fp32; y is rounded once more to the output's dtype, to
// nearest even, subnormals kept, a NaN becoming the positive quiet NaN without
// payload. A row's result depends on that row, the weight and eps alone: not on
// the other rows, the row's place, alignment, strides, the threads or the SIMD
// level. This
// holds in the default floating-point environment; the library never changes
// the one it finds.
//
// A NaN in a row makes that row NaN; an infinity makes its own entry NaN and
// the finite ones 0; a sum of squares over FLT_MAX gives 0.
//
// Domain. input: rank >= 1, any strides except that the last dimension's is 1
// (or its extent 1), last extent >= 1. weight: one dimension as wide, stride 1,
// of input's dtype or fp32. eps: 0 <= eps <= FLT_MAX. output: input's extents
// and dtype, last stride 1, its rows apart from each other and the range of its
// bytes apart from those of input and weight. No rows is fine.
//
// Returns kOk, or the first thing that does not hold; then nothing was written.
[[nodiscard]] XLLM_KERNEL_API Status rms_norm(
    const MutableTensorView& output, const TensorView& input,
    const TensorView& weight, double eps, const Threads& threads = {}) noexcept;

}  // namespace xllm_kernel
