# Tests of core/: ops and the tape run in float and in double.
foreach(stem exp memory parallel params rng tensor)
  list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
foreach(stem ops_elementwise ops_loss ops_mask ops_matmul ops_norm ops_reduce ops_shape var)
  list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
