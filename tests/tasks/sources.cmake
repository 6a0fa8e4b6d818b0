# Tests of tasks/: list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/x_test.cc) or both_tests.
list(APPEND float_tests
  ${CMAKE_CURRENT_LIST_DIR}/catalog_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/image_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/listops_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/mqar_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/task_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/shortcuts/fitted_test.cc)
