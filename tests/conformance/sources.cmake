# The contract checks over both catalogs, and over variants and tasks with planted faults.
list(APPEND float_tests
  ${CMAKE_CURRENT_LIST_DIR}/broken_tasks.cc
  ${CMAKE_CURRENT_LIST_DIR}/broken_tasks_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/conformance_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/planted_bfloat16_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/planted_blocks_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/planted_caches_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/planted_carried_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/planted_eviction_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/planted_packed_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/broken_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/broken_variants.cc
  ${CMAKE_CURRENT_LIST_DIR}/planted_at_edges.cc
  ${CMAKE_CURRENT_LIST_DIR}/planted_gates.cc
  ${CMAKE_CURRENT_LIST_DIR}/planted_passes.cc
  ${CMAKE_CURRENT_LIST_DIR}/planted_softmax.cc
  ${CMAKE_CURRENT_LIST_DIR}/planted_variants.cc
  ${CMAKE_CURRENT_LIST_DIR}/textbook_decoder.cc)
include(${CMAKE_CURRENT_LIST_DIR}/guide.cmake)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/guide_test.cc
  ${guide_variant})
include(${CMAKE_CURRENT_LIST_DIR}/templates.cmake)
