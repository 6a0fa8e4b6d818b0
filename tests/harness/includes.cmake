# The house rules of DESIGN.md, read off the sources.
list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/includes_test.cc)
