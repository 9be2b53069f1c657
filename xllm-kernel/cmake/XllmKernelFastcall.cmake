# The guarded C builtins: an extension module for one exact torch and one exact
# Python. Apart from the bridge, which must not see an unstable header.

if(NOT XLLM_KERNEL_BUILD_TORCH)
  message(FATAL_ERROR
    "xllm-kernel: XLLM_KERNEL_BUILD_FASTCALL needs XLLM_KERNEL_BUILD_TORCH=ON "
    "too, for a builtin hands to the bridge's operator what it does not take.")
endif()
if(NOT EXISTS "${XLLM_KERNEL_PYTHON_INCLUDE}/Python.h")
  message(FATAL_ERROR
    "xllm-kernel: XLLM_KERNEL_PYTHON_INCLUDE must be the folder of Python.h, got "
    "'${XLLM_KERNEL_PYTHON_INCLUDE}'. Install Python's headers (Debian: apt-get "
    "install python3-dev), and pass -DXLLM_KERNEL_PYTHON_INCLUDE=$(python -c "
    "'import sysconfig; print(sysconfig.get_paths()[\"include\"])').")
endif()

add_library(xllm_kernel_fastcall MODULE ${XLLM_KERNEL_FASTCALL_SOURCES})
set_target_properties(xllm_kernel_fastcall PROPERTIES
  PREFIX "" OUTPUT_NAME fastcall_native SUFFIX "${XLLM_KERNEL_PYTHON_SUFFIX}"
  # Torch is loaded long before, as for the bridge.
  SKIP_BUILD_RPATH ON)
target_include_directories(xllm_kernel_fastcall PRIVATE csrc)
target_include_directories(xllm_kernel_fastcall SYSTEM PRIVATE
  "${XLLM_KERNEL_TORCH_DIR}/include"
  "${XLLM_KERNEL_TORCH_DIR}/include/torch/csrc/api/include"
  "${XLLM_KERNEL_PYTHON_INCLUDE}")
xllm_kernel_numerics(xllm_kernel_fastcall)
target_compile_options(xllm_kernel_fastcall PRIVATE
  "-ffile-prefix-map=${XLLM_KERNEL_TORCH_DIR}/=torch/"
  "-ffile-prefix-map=${XLLM_KERNEL_PYTHON_INCLUDE}/=python/")
# Python's own symbols come from the interpreter, so undefined ones are allowed.
target_link_libraries(xllm_kernel_fastcall PRIVATE
  xllm_kernel
  "${XLLM_KERNEL_TORCH_DIR}/lib/libtorch_python.so"
  "${XLLM_KERNEL_TORCH_DIR}/lib/libtorch_cpu.so"
  "${XLLM_KERNEL_TORCH_DIR}/lib/libc10.so")
target_link_options(xllm_kernel_fastcall PRIVATE -Wl,--exclude-libs,ALL)
