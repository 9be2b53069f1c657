# Installs the C++ package: find_package(xllm_kernel) gives the target
# xllm_kernel::xllm_kernel. The torch bridge belongs to the Python package.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS xllm_kernel EXPORT xllm_kernel-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY include/xllm_kernel
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(EXPORT xllm_kernel-targets NAMESPACE xllm_kernel::
  FILE xllm_kernel-config.cmake
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/xllm_kernel")
write_basic_package_version_file(
  "${CMAKE_CURRENT_BINARY_DIR}/xllm_kernel-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/xllm_kernel-config-version.cmake"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/xllm_kernel")
