# The kernel libraries stand alone: they load C and C++ runtime libraries only,
# from wherever those are, and know no symbol of torch or Python.
# Variables: NM, READELF, SHARED, ARCHIVE.

execute_process(COMMAND "${READELF}" --dynamic --wide "${SHARED}"
  OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*" needed "${dynamic}")
string(REGEX MATCHALL "\\((RPATH|RUNPATH)\\)[^\n]*" paths "${dynamic}")
if(NOT needed OR paths)
  message(FATAL_ERROR "${SHARED} must need some library and search no folder of "
    "its own, got:\n${dynamic}")
endif()
# The dynamic loader is part of the C library.
set(runtime "libc\\.so\\.6|libm\\.so\\.6|libstdc\\+\\+\\.so\\.6|ld-linux-[a-z0-9-]+\\.so\\.[12]")
foreach(entry IN LISTS needed)
  if(NOT entry MATCHES "\\[(${runtime})\\]$")
    message(FATAL_ERROR "${SHARED} may need libc, libm and libstdc++ only, got "
      "${entry}")
  endif()
endforeach()

foreach(library IN ITEMS "${SHARED}" "${ARCHIVE}")
  execute_process(COMMAND "${NM}" --demangle "${library}"
    OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  if(NOT symbols MATCHES "xllm_kernel::simd_level\\(\\)")
    message(FATAL_ERROR "${library} has no xllm_kernel::simd_level(): this looked "
      "at the wrong file")
  endif()
  string(REGEX MATCHALL
    "[^\n]*[^A-Za-z0-9_:]((torch|c10|at)::|_?Py[A-Z]|aoti_torch_|torch_)[^\n]*"
    foreign "${symbols}")
  if(foreign)
    list(JOIN foreign "\n" foreign)
    message(FATAL_ERROR "${library} must know nothing of torch and Python, got:\n"
      "${foreign}")
  endif()
endforeach()
