# Installs the C++ package: headers, both libraries, find_package(XllmKernel).
# The torch bridge belongs to the Python package.

include(CMakePackageConfigHelpers)

set(folder "${CMAKE_INSTALL_LIBDIR}/cmake/XllmKernel")
install(TARGETS xllm_kernel xllm_kernel_shared EXPORT XllmKernelTargets)
install(DIRECTORY include/xllm_kernel
  "${CMAKE_CURRENT_BINARY_DIR}/include/xllm_kernel"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(EXPORT XllmKernelTargets NAMESPACE XllmKernel:: DESTINATION "${folder}")
configure_package_config_file(cmake/XllmKernelConfig.cmake.in
  "${CMAKE_CURRENT_BINARY_DIR}/XllmKernelConfig.cmake"
  INSTALL_DESTINATION "${folder}")
write_basic_package_version_file(
  "${CMAKE_CURRENT_BINARY_DIR}/XllmKernelConfigVersion.cmake"
  COMPATIBILITY ${XLLM_KERNEL_COMPATIBILITY})
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/XllmKernelConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/XllmKernelConfigVersion.cmake"
  DESTINATION "${folder}")
