# Installs the package outside the tree, moves it, and builds and runs a project
# that can only find it there.
# Variables: BUILD (what to install), SOURCE (the project), PROGRAM (what it
# builds), OPTIONS (how to configure it), EMULATOR (what runs it, may be empty).

execute_process(COMMAND mktemp -d OUTPUT_VARIABLE outside
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

# Runs a command in turn, unless an earlier one has failed.
set(failed "")
function(step)
  if(failed)
    return()
  endif()
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status
    OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message(STATUS "${output}")
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    set(failed "'${command}' ended with status ${status}" PARENT_SCOPE)
  endif()
endfunction()

step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${outside}/first")
# An archive is unpacked anywhere: no file may hold the path it was made for.
step("${CMAKE_COMMAND}" -E rename "${outside}/first" "${outside}/prefix")
step("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${outside}/build"
  "-DCMAKE_PREFIX_PATH=${outside}/prefix" ${OPTIONS})
step("${CMAKE_COMMAND}" --build "${outside}/build")
step(${EMULATOR} "${outside}/build/${PROGRAM}")
file(REMOVE_RECURSE "${outside}")
if(failed)
  message(FATAL_ERROR "${failed}; what it said is above")
endif()
