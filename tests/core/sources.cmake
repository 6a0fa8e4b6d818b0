# Tests of core/: ops and the tape run in float and in double.
list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/allocations.cc) # operator new, counted
foreach(stem memory no_memory parallel params recycled rng row_tiles tensor)
  list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
foreach(stem attention_rows feature_rows isa product row_ops softmax_rows ops_elementwise ops_feed_forward ops_heads ops_linear ops_loss ops_mask ops_matmul ops_norm ops_reduce ops_shape var)
  list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
