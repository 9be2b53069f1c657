# Sanitizers, and what fuzzers are steered by, for the library and its tests
# alike: half a program says nothing, or false things. Chooses no test.

set(XLLM_KERNEL_SANITIZE "" CACHE STRING
    "Sanitizers to build with: address,undefined or thread; empty for none")
if(XLLM_KERNEL_SANITIZE)
  # -O1: a quarter of the time to compile, and faster together.
  add_compile_options("-fsanitize=${XLLM_KERNEL_SANITIZE}"
    -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1)
  add_link_options("-fsanitize=${XLLM_KERNEL_SANITIZE}")
endif()
if(XLLM_KERNEL_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "xllm-kernel: XLLM_KERNEL_BUILD_FUZZERS needs Clang, got "
      "${CMAKE_CXX_COMPILER}; set CMAKE_CXX_COMPILER to clang++-16")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
