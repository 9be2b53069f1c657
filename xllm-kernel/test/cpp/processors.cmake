# Public tests on emulated older x86-64 processors, where an instruction that
# the processor lacks ends the process. Says nothing about speed.

find_program(XLLM_KERNEL_QEMU_X86_64 qemu-x86_64)
if(CMAKE_CROSSCOMPILING
   OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  return()
elseif(NOT XLLM_KERNEL_QEMU_X86_64)
  xllm_kernel_skipped_test(processor "needs the Debian package qemu-user")
  return()
endif()

foreach(pair IN ITEMS Nehalem:scalar Haswell:avx2)
  string(REPLACE ":" ";" pair "${pair}")
  list(GET pair 0 processor)
  list(GET pair 1 level)
  set(emulated "${XLLM_KERNEL_QEMU_X86_64}" -cpu "${processor}")
  foreach(test IN LISTS operator_tests)
    # Emulated, 2^31 elements would take minutes.
    add_test(NAME "processor.${processor}.${test}"
      COMMAND ${emulated} "$<TARGET_FILE:${test}>"
        --gtest_filter=Public*-*width_past_two_to_the_31*)
  endforeach()
  # The level that is best there is available there, where the tests above must
  # not have passed at a lesser one.
  add_test(NAME "processor.${processor}.${level}"
    COMMAND ${emulated} "$<TARGET_FILE:core_test>"
      --gtest_filter=Levels.test_selected_*)
  set_tests_properties("processor.${processor}.${level}" PROPERTIES
    ENVIRONMENT "XLLM_KERNEL_SIMD_LEVEL=${level}"
    FAIL_REGULAR_EXPRESSION "this machine has no level")
endforeach()
