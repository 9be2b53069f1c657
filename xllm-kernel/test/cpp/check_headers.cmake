# Public headers include each other and the standard library, nothing that a
# host would have to install first, and export each function they leave to the
# library.
# Variables: HEADERS.

set(faults "")
set(includes 0)
set(functions 0)
foreach(header IN LISTS HEADERS)
  file(STRINGS "${header}" lines REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS lines)
    math(EXPR includes "${includes} + 1")
    if(NOT line MATCHES "^#include (<[a-z_]+>|\"xllm_kernel/[a-z_]+\\.h\")$")
      list(APPEND faults "${header}: ${line}: neither <standard> nor xllm_kernel/")
    endif()
  endforeach()

  # Declarations without a body: the text before a semicolon, after a brace.
  file(READ "${header}" text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "\n#[^\n]*" "" text "${text}")
  # A default argument's braces are no body's.
  string(REPLACE " = {}" "" text "${text}")
  # Brackets would upset CMake's lists.
  string(REGEX REPLACE "[][]" "" text "${text}")
  foreach(statement IN LISTS text)
    string(REGEX REPLACE "^.*[{}]" "" statement "${statement}")
    string(REGEX REPLACE "[ \n]+" " " statement "${statement}")
    # No function of the library throws; a pointer to one is not exported.
    if(statement MATCHES "\\)( const)? noexcept$" AND NOT statement MATCHES "\\(\\*")
      math(EXPR functions "${functions} + 1")
      if(NOT statement MATCHES "XLLM_KERNEL_API")
        list(APPEND faults "${header}:${statement}: not marked XLLM_KERNEL_API")
      endif()
    endif()
  endforeach()
endforeach()

if(faults)
  list(JOIN faults "\n  " faults)
  message(FATAL_ERROR "public headers include <standard> and \"xllm_kernel/...\" "
    "headers only and mark what they declare, got:\n  ${faults}")
endif()
if(includes LESS 5 OR functions LESS 5)
  message(FATAL_ERROR "found ${includes} includes and ${functions} functions in "
    "'${HEADERS}', expected more: this looked at the wrong files")
endif()
message(STATUS "${includes} includes, ${functions} functions")
