# Tests of harness/tables.
foreach(stem closing faster_from tuned)
  list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
