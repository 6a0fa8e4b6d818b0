# Tests of harness/measure and harness/store.
foreach(stem calibrate environment fidelity memory parse rows schema speed statistics workload)
  list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
