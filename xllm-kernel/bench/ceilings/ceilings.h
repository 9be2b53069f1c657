/* What memory and arithmetic allow on this machine, as a C interface for hosts
 * of any language (Python's ctypes, say). Knows no operator; allocates no
 * buffer: a kernel is judged by ceilings measured on memory like its own.
 *
 * Each function does `repetitions` passes over the whole of its buffers with
 * the vectors of this process's SIMD level (XLLM_KERNEL_SIMD_LEVEL forces one)
 * and returns the seconds of one pass: their mean. Repeat the call and keep the
 * least: a ceiling is the best that was seen.
 *
 * `threads` threads each take one contiguous part, in all passes, each on a
 * processor of its own where there are enough (of the first 1024); they start
 * together, and the clock runs from the first start to the last end. Starting
 * them is outside of it, and so is every wait between passes: what a real
 * kernel pays for a fork and join is no part of its ceiling.
 *
 * Bytes a pass moves, by the convention of kernels (each byte that must be read
 * or written counts once):
 *   read                  bytes
 *   copy, copy_streaming  2 * bytes
 *   update                2 * bytes
 * Ordinary stores to memory outside the caches also fetch each line they
 * overwrite; that traffic is not counted, which is why `copy` is slower there
 * than `copy_streaming`.
 *
 * A negative return refuses the arguments; nothing ran. xllm_ceiling_error()
 * then says why. */
#ifndef XLLM_KERNEL_BENCH_CEILINGS_CEILINGS_H_
#define XLLM_KERNEL_BENCH_CEILINGS_CEILINGS_H_

#include <stdint.h>

#define XLLM_CEILING_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Operations are counted in multiples of this: whole turns of every level's
 * loops. */
#define XLLM_CEILING_GRAIN 1536

/* Loads every byte once. */
XLLM_CEILING_API double xllm_ceiling_read(const void* source, int64_t bytes,
                                          int32_t threads, int64_t repetitions);

/* Copies with ordinary stores. The buffers must not overlap. */
XLLM_CEILING_API double xllm_ceiling_copy(void* destination, const void* source,
                                          int64_t bytes, int32_t threads,
                                          int64_t repetitions);

/* Copies with non-temporal stores, which go past the caches. Where a level has
 * none (NEON's are a hint only), it is what the processor makes of it. */
XLLM_CEILING_API double xllm_ceiling_copy_streaming(void* destination,
                                                    const void* source,
                                                    int64_t bytes,
                                                    int32_t threads,
                                                    int64_t repetitions);

/* Reads, changes and writes every byte where it lies: each pass inverts the
 * bits of 0x5a, so that two passes restore the buffer. */
XLLM_CEILING_API double xllm_ceiling_update(void* buffer, int64_t bytes,
                                            int32_t threads,
                                            int64_t repetitions);

/* fp32 multiply-adds in registers. `operations` counts a product and its sum as
 * two, over all threads; it is a multiple of XLLM_CEILING_GRAIN times
 * `threads`. Level scalar, which may not assume an FMA instruction, multiplies
 * and adds. */
XLLM_CEILING_API double xllm_ceiling_fma(int64_t operations, int32_t threads,
                                         int64_t repetitions);

/* Dot products of bf16 pairs summed in fp32, in registers; operations as above,
 * two products and two sums counting four. Refused by levels that have no such
 * instruction: all but avx512bf16. */
XLLM_CEILING_API double xllm_ceiling_dot(int64_t operations, int32_t threads,
                                         int64_t repetitions);

/* Seconds that a thread of this thread's last measurement did not run while the
 * clock ran, the one that waited most: others had its processor. 0 where nobody
 * had. */
XLLM_CEILING_API double xllm_ceiling_waited(void);

/* The level in use; empty where XLLM_KERNEL_SIMD_LEVEL is wrong, in which case
 * every function refuses. */
XLLM_CEILING_API const char* xllm_ceiling_level(void);

/* Why this thread's last call was refused; empty if none was. Valid until the
 * thread's next call. */
XLLM_CEILING_API const char* xllm_ceiling_error(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* XLLM_KERNEL_BENCH_CEILINGS_CEILINGS_H_ */
