# Tests of harness/sweep.
foreach(stem cells faster_from grammar outcome pilots process process_group profiles remaining resume rounds sweep tuned)
  list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
# Of the command line what has no output of its own.
list(APPEND float_tests
  ${PROJECT_SOURCE_DIR}/harness/cli/faster_from.cc
  ${PROJECT_SOURCE_DIR}/harness/cli/tuned.cc)
