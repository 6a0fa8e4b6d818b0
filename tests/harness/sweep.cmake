# Tests of harness/sweep.
foreach(stem cells grammar outcome pilots process process_group profiles remaining resume rounds sweep)
  list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
