# Reads the version from the one place that holds it, which Python's metadata
# uses too. Needs no Python.

set(source "${CMAKE_CURRENT_LIST_DIR}/../python/xllm_kernel/version.py")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
file(STRINGS "${source}" line REGEX "^__version__ = ")
if(NOT line MATCHES "^__version__ = \"([0-9]+\\.[0-9]+\\.[0-9]+)\"$")
  message(FATAL_ERROR
    "xllm-kernel: ${source} must hold one line __version__ = \"MAJOR.MINOR.PATCH\", "
    "got '${line}'. Correct it.")
endif()
set(XLLM_KERNEL_VERSION "${CMAKE_MATCH_1}")
