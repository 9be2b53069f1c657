# Compares the operators that libopapi exports with those that the README lists.
# Takes LIBRARY, README and NM.
execute_process(COMMAND "${NM}" -D --defined-only "${LIBRARY}"
                OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "aclnn[A-Za-z0-9]+GetWorkspaceSize" exported "${symbols}")
list(TRANSFORM exported REPLACE "^aclnn(.*)GetWorkspaceSize$" "\\1")
list(SORT exported)

# The table's rows end with a file of operators/; their first cells list names.
file(STRINGS "${README}" rows REGEX "^\\| [A-Z].*\\| `[a-z_]+\\.cpp` \\|")
set(listed "")
foreach(row IN LISTS rows)
  string(REGEX REPLACE "^\\| ([^|]*) \\|.*$" "\\1" names "${row}")
  string(REPLACE ", " ";" names "${names}")
  list(APPEND listed ${names})
endforeach()
list(SORT listed)

if(NOT exported)
  message(FATAL_ERROR "${LIBRARY} exports no operator")
endif()
if(NOT exported STREQUAL listed)
  set(unlisted ${exported})
  list(REMOVE_ITEM unlisted ${listed})
  set(missing ${listed})
  list(REMOVE_ITEM missing ${exported})
  message(FATAL_ERROR "${README} must list each operator once that is exported; "
                      "not listed: ${unlisted}; not exported: ${missing}")
endif()
