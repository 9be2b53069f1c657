# The libraries as a host gets them: instructions, exports, dependencies, and
# the installed package from outside the tree.

set(checks "${CMAKE_CURRENT_SOURCE_DIR}")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  find_program(OBJDUMP objdump REQUIRED)
  add_test(NAME baseline.no_wide_instructions
    COMMAND "${CMAKE_COMMAND}" "-DOBJDUMP=${OBJDUMP}"
      "-DOBJECTS=$<TARGET_FILE:xllm_kernel>" -P "${checks}/check_baseline.cmake")
endif()

add_test(NAME library.exports
  COMMAND "${CMAKE_COMMAND}" "-DNM=${CMAKE_NM}"
    "-DLIBRARY=$<TARGET_FILE:xllm_kernel_shared>"
    "-DEXPECTED=${checks}/exports.txt" -P "${checks}/check_exports.cmake")
add_test(NAME library.dependencies
  COMMAND "${CMAKE_COMMAND}" "-DNM=${CMAKE_NM}" "-DREADELF=${CMAKE_READELF}"
    "-DSHARED=$<TARGET_FILE:xllm_kernel_shared>"
    "-DARCHIVE=$<TARGET_FILE:xllm_kernel>"
    -P "${checks}/check_dependencies.cmake")

# How to configure a project as this one is.
set(configure -G "${CMAKE_GENERATOR}"
  "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}"
  "-DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS}")
if(CMAKE_TOOLCHAIN_FILE)
  list(APPEND configure "-DCMAKE_TOOLCHAIN_FILE=${CMAKE_TOOLCHAIN_FILE}")
endif()

# Builds a project against the package, installed outside the tree, and runs it.
function(xllm_kernel_package_test name source program)
  add_test(NAME "${name}"
    COMMAND "${CMAKE_COMMAND}" "-DBUILD=${PROJECT_BINARY_DIR}"
      "-DSOURCE=${source}" "-DPROGRAM=${program}"
      "-DOPTIONS=${configure};${ARGN}"
      "-DEMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}"
      -P "${checks}/check_package.cmake")
endfunction()

set(example "${PROJECT_SOURCE_DIR}/../examples/cpp")
xllm_kernel_package_test(package.example.static "${example}" norms)
xllm_kernel_package_test(package.example.shared "${example}" norms
  -DBUILD_SHARED_LIBS=ON)
set(facts "-DVERSION=${PROJECT_VERSION}" "-DCHECKS=${checks}")
xllm_kernel_package_test(package.host.static "${checks}/package" host
  ${facts} -DCHOSEN=XllmKernel::static)
xllm_kernel_package_test(package.host.shared "${checks}/package" host
  ${facts} -DCHOSEN=XllmKernel::shared -DBUILD_SHARED_LIBS=ON)

# Not installed but added to a host's tree, configured only.
add_test(NAME package.subdirectory
  COMMAND "${CMAKE_COMMAND}" -S "${checks}/package/subdirectory"
    -B "${CMAKE_CURRENT_BINARY_DIR}/subdirectory" ${configure}
    "-DXLLM_KERNEL=${PROJECT_SOURCE_DIR}")
