# Tests of harness/check beside those of tests/conformance.
foreach(stem derive fit undeclared)
  list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
