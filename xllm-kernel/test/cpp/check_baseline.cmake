# Disassembles the library: outside the functions of a level's own file, nothing
# may need more than the baseline processor; inside that file, only functions
# that no other object can take for its own.
# Variables: OBJDUMP, OBJECTS (archives and object files).

# VEX and EVEX instructions start with v; zmm, ymm and masks name themselves.
set(wide_instruction "^ +[0-9a-f]+:[ \t]+(v[a-z0-9]+ .*|.*%[yz]mm.*|.*%k[0-7].*)$")
# Only what the loop below looks at: CMake is slow over a whole disassembly.
execute_process(
  COMMAND "${OBJDUMP}" -d --no-show-raw-insn ${OBJECTS}
  COMMAND grep -E "\\.cpp\\.o: |>:$|\tv[a-z0-9]+ |%[yz]mm|%k[0-7]"
  OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${OBJDUMP}" -t ${OBJECTS}
  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)

# Brackets and semicolons would upset CMake's lists.
string(REGEX REPLACE "[][;]" " " text "${text}")
string(REPLACE "\n" ";" lines "${text}")
set(object "")
set(function "")
set(looked_up "")
set(wide 0)
set(faults "")
foreach(line IN LISTS lines)
  if(line MATCHES "([a-z0-9_]+)\\.cpp\\.o: ")
    set(object "${CMAKE_MATCH_1}")
  elseif(line MATCHES "^[0-9a-f]+ <(.*)>:$")
    set(function "${CMAKE_MATCH_1}")
  elseif(line MATCHES "${wide_instruction}")
    if(NOT object MATCHES "^avx(2|512|512bf16)$")
      list(APPEND faults "${object}: ${function}: ${CMAKE_MATCH_1}")
    else()
      math(EXPR wide "${wide} + 1")
      if(NOT function STREQUAL looked_up)
        set(looked_up "${function}")
        # Weak symbols are the ones that the linker shares between objects.
        string(REGEX MATCH "[^\n]* ${function}\n" symbol "${symbols}")
        if(symbol MATCHES "^[0-9a-f]+ +[wu]")
          list(APPEND faults "${object}: shared function ${function}")
        endif()
      endif()
    endif()
  endif()
endforeach()

if(faults)
  list(REMOVE_DUPLICATES faults)
  list(JOIN faults "\n  " faults)
  message(FATAL_ERROR "instructions beyond the baseline:\n  ${faults}")
endif()
# A scan that finds none where they must be has looked at the wrong thing.
if(wide LESS 100)
  message(FATAL_ERROR "found ${wide} wide instructions in the levels' files, "
    "expected many: the scan no longer understands the disassembly")
endif()
message(STATUS "${wide} wide instructions, all in functions of a level's file")
