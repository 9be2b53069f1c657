# Compiler flags that results depend on. The baseline instruction set only:
# levels are opened function by function in the sources.

function(xllm_kernel_numerics target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror=return-type
    # A product and a sum stay two roundings unless the source says fma.
    -ffp-contract=off
    # errno of a square root is nobody's concern; its value is the same.
    -fno-math-errno
    # No folder of the building machine in the binary.
    "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
endfunction()

foreach(flag IN ITEMS -march=native -mtune=native -ffast-math -Ofast
        -funsafe-math-optimizations -mavx -mavx2 -mfma)
  if(" ${CMAKE_CXX_FLAGS} " MATCHES " ${flag} ")
    message(FATAL_ERROR
      "xllm-kernel: CMAKE_CXX_FLAGS must not hold ${flag}, which changes results "
      "or the processors that can run the baseline; got '${CMAKE_CXX_FLAGS}'. "
      "Remove it (also from the CXXFLAGS variable).")
  endif()
endforeach()
