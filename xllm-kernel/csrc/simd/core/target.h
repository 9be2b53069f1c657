// Opens and closes a region whose functions are compiled for one SIMD level.
// Open it after all includes, and keep what it holds in an unnamed namespace:
// a shared inline function compiled inside would serve, and crash, processors
// without the level. Never wraps a whole file.
#pragma once

#if defined(__clang__)
// One literal: _Pragma takes no concatenation.
// clang-format off
#define XLLM_KERNEL_TARGET_AVX2_BEGIN \
  _Pragma("clang attribute push(__attribute__((target(\"avx2,fma,f16c\"))), apply_to = function)")
// clang-format on
#define XLLM_KERNEL_TARGET_END _Pragma("clang attribute pop")
#else
#define XLLM_KERNEL_TARGET_AVX2_BEGIN \
  _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,fma,f16c\")")
#define XLLM_KERNEL_TARGET_END _Pragma("GCC pop_options")
#endif
