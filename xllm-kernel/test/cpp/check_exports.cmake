# A shared library's dynamic symbols are those of a list, no fewer and no more.
# Variables: NM, LIBRARY, EXPECTED (a file, a demangled function a line).

execute_process(COMMAND "${NM}" --dynamic --defined-only --demangle "${LIBRARY}"
  OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "\n$" "" text "${text}")
string(REPLACE "\n" ";" lines "${text}")
set(found "")
foreach(line IN LISTS lines)
  # Address, kind, name. A kind other than T, code, stays in what is reported.
  string(REGEX REPLACE "^[0-9a-f]+ (T )?" "" line "${line}")
  list(APPEND found "${line}")
endforeach()
file(STRINGS "${EXPECTED}" expected)

set(extra ${found})
list(REMOVE_ITEM extra ${expected})
set(missing ${expected})
list(REMOVE_ITEM missing ${found})
if(extra OR missing)
  list(JOIN extra "\n  " extra)
  list(JOIN missing "\n  " missing)
  message(FATAL_ERROR "${LIBRARY} must export what ${EXPECTED} lists.\n"
    "exported, not listed:\n  ${extra}\nlisted, not exported:\n  ${missing}\n"
    "XLLM_KERNEL_API in a public header exports a function; a change of the "
    "list is a change of the public API.")
endif()
