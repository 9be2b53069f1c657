# Public headers: each compiled alone by every compiler that is here, warnings
# being errors, and what they may include and must export.

set(include_folders "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
file(GLOB public_headers CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/include/xllm_kernel/*.h"
  "${PROJECT_BINARY_DIR}/include/xllm_kernel/*.h")

set(compilers "${CMAKE_CXX_COMPILER}")
# A second compiler, as hosts have it. It knows no headers of a cross build.
if(NOT CMAKE_CROSSCOMPILING AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  find_program(XLLM_KERNEL_CLANG NAMES clang++-16 clang++)
  if(XLLM_KERNEL_CLANG)
    list(APPEND compilers "${XLLM_KERNEL_CLANG}")
  else()
    xllm_kernel_skipped_test(headers.alone.clang "needs the Debian package clang-16")
  endif()
endif()

foreach(header IN LISTS public_headers)
  get_filename_component(name "${header}" NAME)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/alone/${name}.cpp")
  # Twice, so that a header without its pragma fails.
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT
    "#include \"xllm_kernel/@name@\"\n#include \"xllm_kernel/@name@\"\n")
  foreach(compiler IN LISTS compilers)
    get_filename_component(compiler_name "${compiler}" NAME)
    add_test(NAME "headers.alone.${name}.${compiler_name}"
      COMMAND "${compiler}" -std=c++20 -Wall -Wextra -Wpedantic -Wshadow
        -Wconversion -Werror
        -fsyntax-only "-I$<JOIN:${include_folders},;-I>" "${source}"
      COMMAND_EXPAND_LISTS)
  endforeach()
endforeach()

add_test(NAME headers.contents
  COMMAND "${CMAKE_COMMAND}" "-DHEADERS=${public_headers}"
    -P "${CMAKE_CURRENT_SOURCE_DIR}/check_headers.cmake")
