# The bridge to torch over its stable ABI: one binary for every torch from the
# floor on. Needs torch's headers and libtorch_cpu only.

set(XLLM_KERNEL_TORCH_FLOOR "2.11")
set(XLLM_KERNEL_TORCH_TARGET "0x020b000000000000")

if(NOT EXISTS "${XLLM_KERNEL_TORCH_DIR}/include/torch/csrc/stable/library.h")
  message(FATAL_ERROR
    "xllm-kernel: XLLM_KERNEL_TORCH_DIR must be the folder of an installed torch "
    ">= ${XLLM_KERNEL_TORCH_FLOOR}, got '${XLLM_KERNEL_TORCH_DIR}'. Pass "
    "-DXLLM_KERNEL_TORCH_DIR=$(python -c 'import torch; print(torch.__path__[0])').")
endif()

file(STRINGS "${XLLM_KERNEL_TORCH_DIR}/include/torch/headeronly/version.h" lines
     REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2"
       found "${lines}")
if(found VERSION_LESS XLLM_KERNEL_TORCH_FLOOR)
  message(FATAL_ERROR
    "xllm-kernel: the bridge needs torch >= ${XLLM_KERNEL_TORCH_FLOOR}, found "
    "${found} in ${XLLM_KERNEL_TORCH_DIR}. Install a newer torch.")
endif()

add_library(xllm_kernel_torch MODULE ${XLLM_KERNEL_TORCH_SOURCES})
target_compile_definitions(xllm_kernel_torch PRIVATE
  "TORCH_TARGET_VERSION=${XLLM_KERNEL_TORCH_TARGET}")
target_include_directories(xllm_kernel_torch PRIVATE csrc)
target_include_directories(xllm_kernel_torch SYSTEM PRIVATE
  "${XLLM_KERNEL_TORCH_DIR}/include")
xllm_kernel_numerics(xllm_kernel_torch)
target_compile_options(xllm_kernel_torch PRIVATE
  "-ffile-prefix-map=${XLLM_KERNEL_TORCH_DIR}/=torch/")
target_link_libraries(xllm_kernel_torch PRIVATE
  xllm_kernel "${XLLM_KERNEL_TORCH_DIR}/lib/libtorch_cpu.so")
target_link_options(xllm_kernel_torch PRIVATE
  -Wl,--no-undefined -Wl,--exclude-libs,ALL)
# Torch is loaded long before the bridge, so the binary carries no path to it.
set_target_properties(xllm_kernel_torch PROPERTIES SKIP_BUILD_RPATH ON)

# What setup.py records of the tools.
list(JOIN XLLM_KERNEL_LEVELS "\", \"" levels)
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/toolchain.json" CONTENT
"{
  \"build_type\": \"@CMAKE_BUILD_TYPE@\",
  \"compiler\": \"@CMAKE_CXX_COMPILER_ID@ @CMAKE_CXX_COMPILER_VERSION@\",
  \"levels\": [\"@levels@\"],
  \"machine\": \"@CMAKE_SYSTEM_PROCESSOR@\",
  \"torch_floor\": \"@XLLM_KERNEL_TORCH_FLOOR@\"
}
" @ONLY)
