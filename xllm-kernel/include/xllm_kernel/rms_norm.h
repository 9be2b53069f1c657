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
// level. A width over 2^24 is rounded to fp32 before it divides.
//
// Floating-point environment. The above holds in the default one. The library
// leaves the one it finds as it is, its sticky flags apart, and works in the
// caller's on every thread. In another rounding mode every fp32 step rounds by
// it, but the last one, to 16 bits, to nearest even. Where subnormals are
// flushed (on x86-64 FTZ for results, DAZ for operands; on aarch64 FZ for both)
// those of fp32 and bf16 are zeros of their sign, while fp16's are kept. The
// rest of the above still holds, with one exception: at level neon the rounding
// to fp16 follows the mode. A host that traps exceptions gets its traps.
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
