# The bridge to xlite's launchers: for one exact torch and torch_npu, whose C++
# headers have no stable interface. Needs both wheels, nothing of CANN: what
# only a device has is bound when a worker loads the bridge.

set(npu "${XLLM_KERNEL_TORCH_NPU_DIR}")
set(missing "")
foreach(file IN ITEMS
    "${XLLM_KERNEL_TORCH_DIR}/include/torch/library.h"
    "${npu}/include/torch_npu/csrc/core/npu/NPUStream.h"
    "${npu}/lib/libtorch_npu.so"
    ${XLLM_KERNEL_LAUNCHERS})
  if(NOT EXISTS "${file}")
    list(APPEND missing "${file}")
  endif()
endforeach()
if(missing OR NOT XLLM_KERNEL_LAUNCHERS)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR
    "xllm-kernel: XLLM_KERNEL_BUILD_XLITE needs XLLM_KERNEL_TORCH_DIR and "
    "XLLM_KERNEL_TORCH_NPU_DIR, the folders of the installed packages, and "
    "XLLM_KERNEL_LAUNCHERS, a list of libraries; missing: '${missing}'. "
    "setup.py finds them: XLLM_KERNEL_BUILD_XLITE=1 python setup.py build_ext.")
endif()

add_library(xllm_kernel_xlite MODULE ${XLLM_KERNEL_XLITE_SOURCES})
# Whoever loads the bridge has loaded all that it links, from where it checked
# them, so the binary carries no path.
set_target_properties(xllm_kernel_xlite PROPERTIES SKIP_BUILD_RPATH ON)
target_include_directories(xllm_kernel_xlite PRIVATE csrc)
target_include_directories(xllm_kernel_xlite SYSTEM PRIVATE
  "${XLLM_KERNEL_TORCH_DIR}/include"
  "${XLLM_KERNEL_TORCH_DIR}/include/torch/csrc/api/include"
  "${npu}/include"
  "${npu}/include/third_party/acl/inc"
  "${npu}/include/third_party/hccl/inc")
xllm_kernel_numerics(xllm_kernel_xlite)
target_compile_options(xllm_kernel_xlite PRIVATE
  "-ffile-prefix-map=${XLLM_KERNEL_TORCH_DIR}/=torch/"
  "-ffile-prefix-map=${npu}/=torch_npu/")
target_link_libraries(xllm_kernel_xlite PRIVATE
  ${XLLM_KERNEL_LAUNCHERS}
  "${npu}/lib/libtorch_npu.so"
  "${XLLM_KERNEL_TORCH_DIR}/lib/libtorch_cpu.so"
  "${XLLM_KERNEL_TORCH_DIR}/lib/libc10.so")

# What setup.py records of the tools.
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/xlite.json" CONTENT
"{
  \"build_type\": \"@CMAKE_BUILD_TYPE@\",
  \"compiler\": \"@CMAKE_CXX_COMPILER_ID@ @CMAKE_CXX_COMPILER_VERSION@\",
  \"machine\": \"@CMAKE_SYSTEM_PROCESSOR@\"
}
" @ONLY)
