# How the kernels reach a C++ host: one compilation, a static and a shared
# library of it. Names the targets as the installed package does.

configure_file(include/xllm_kernel/version.h.in
  "${CMAKE_CURRENT_BINARY_DIR}/include/xllm_kernel/version.h" @ONLY)

# Before 1.0 a minor version may break its users, afterwards only a major one.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(XLLM_KERNEL_COMPATIBILITY SameMinorVersion)
  set(XLLM_KERNEL_SOVERSION "0.${PROJECT_VERSION_MINOR}")
else()
  set(XLLM_KERNEL_COMPATIBILITY SameMajorVersion)
  set(XLLM_KERNEL_SOVERSION "${PROJECT_VERSION_MAJOR}")
endif()

# The static library's objects are position independent and hidden but for the
# API, hence the shared library's too.
add_library(xllm_kernel_shared SHARED $<TARGET_OBJECTS:xllm_kernel>)
set(exports "${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map")
set_target_properties(xllm_kernel_shared PROPERTIES
  LINKER_LANGUAGE CXX
  LINK_DEPENDS "${exports}"
  OUTPUT_NAME xllm_kernel
  SOVERSION "${XLLM_KERNEL_SOVERSION}"
  VERSION "${PROJECT_VERSION}")
target_link_options(xllm_kernel_shared PRIVATE
  "LINKER:--no-undefined" "LINKER:--version-script=${exports}")
if(XLLM_KERNEL_SANITIZE)
  # Clang leaves a sanitizer's symbols to the program; nothing there needs it.
  set_target_properties(xllm_kernel_shared PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
# A host's own shared library keeps the kernels that it links to itself.
target_link_options(xllm_kernel INTERFACE
  "LINKER:--exclude-libs,libxllm_kernel.a")

set_target_properties(xllm_kernel PROPERTIES EXPORT_NAME static)
set_target_properties(xllm_kernel_shared PROPERTIES EXPORT_NAME shared)
foreach(library IN ITEMS xllm_kernel xllm_kernel_shared)
  target_include_directories(${library} PUBLIC
    "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>"
    "$<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_compile_features(${library} PUBLIC cxx_std_20)
endforeach()

# For a project that adds this folder instead of finding the package.
add_library(XllmKernel::static ALIAS xllm_kernel)
add_library(XllmKernel::shared ALIAS xllm_kernel_shared)
if(BUILD_SHARED_LIBS)
  add_library(XllmKernel::xllm_kernel ALIAS xllm_kernel_shared)
else()
  add_library(XllmKernel::xllm_kernel ALIAS xllm_kernel)
endif()
