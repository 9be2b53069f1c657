# What the xlite launcher libraries link and call, beside libascendcl's aclrt*.
target_sources(ascendcl PRIVATE
  ascendcl/profiling.cpp
  ascendcl/runtime.cpp)
target_link_libraries(ascendcl PRIVATE ascend_sim_launchers)

add_library(ascend_dump SHARED ascend_dump.cpp)
# The launcher libraries were compiled with the strings of before C++11.
target_compile_definitions(ascend_dump PRIVATE _GLIBCXX_USE_CXX11_ABI=0)
# They name no other library of CANN's, so this one must bring libascendcl
# along even where it uses nothing of it.
target_link_libraries(ascend_dump PRIVATE -Wl,--no-as-needed ascendcl)

add_library(c_sec SHARED c_sec.cpp)

foreach(name ascend_dump c_sec)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
endforeach()

set_target_properties(ascend_dump c_sec PROPERTIES
  BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" BUILD_RPATH_USE_ORIGIN ON)
