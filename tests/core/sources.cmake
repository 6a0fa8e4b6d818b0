# Tests of core/: ops and the tape run in float and in double.
list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/base/allocations.cc) # operator new, counted
foreach(stem base/affinity base/bfloat16 base/cache base/cgroup base/check base/marks base/memory base/no_memory base/parallel base/params base/recycled base/rng simd/row_tiles tensor/tensor)
  list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
foreach(stem simd/attention_rows simd/bfloat16_product simd/channel_decay simd/feature_rows simd/isa simd/paired_rows simd/product simd/row_ops simd/row_products simd/softmax_rows simd/top_rows simd/transpose ops/ops_elementwise ops/ops_feed_forward ops/ops_heads ops/ops_linear ops/ops_loss ops/ops_mask ops/ops_matmul ops/ops_norm ops/ops_reduce ops/ops_shape autograd/var)
  list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
