// Opens and closes a region whose functions are compiled for one SIMD level.
// Open it after all includes, and keep what it holds in an unnamed namespace:
// a shared inline function compiled inside would serve, and crash, processors
// without the level. Never wraps a whole file.
#pragma once

#define XLLM_KERNEL_PRAGMA(text) _Pragma(#text)

#if defined(__clang__)
#define XLLM_KERNEL_TARGET_BEGIN(features)                                   \
  XLLM_KERNEL_PRAGMA(clang attribute push(__attribute__((target(features))), \
                                          apply_to = function))
#define XLLM_KERNEL_TARGET_END XLLM_KERNEL_PRAGMA(clang attribute pop)
#else
#define XLLM_KERNEL_TARGET_BEGIN(features) \
  XLLM_KERNEL_PRAGMA(GCC push_options)     \
  XLLM_KERNEL_PRAGMA(GCC target(features))
#define XLLM_KERNEL_TARGET_END XLLM_KERNEL_PRAGMA(GCC pop_options)
#endif

#define XLLM_KERNEL_TARGET_AVX2_BEGIN XLLM_KERNEL_TARGET_BEGIN("avx2,fma,f16c")
#define XLLM_KERNEL_TARGET_AVX512_BEGIN \
  XLLM_KERNEL_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")
#define XLLM_KERNEL_TARGET_AVX512BF16_BEGIN \
  XLLM_KERNEL_TARGET_BEGIN(                 \
      "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
