# Tests of core/: ops and the tape run in float and in double.
list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/base/allocations.cc) # operator new, counted
foreach(stem base/process_limits base/numbers base/memory base/parallel base/params simd/row_tiles tensor/tensor)
  list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
foreach(stem simd/attention_rows simd/bfloat16_product simd/feature_rows simd/fourier_pass simd/listed_rows simd/row_kernels simd/product simd/quantised_product simd/rounded_product simd/row_ops simd/softmax_rows ops/ops_block ops/ops_elementwise ops/ops_feed_forward ops/ops_gated_norm ops/ops_linear ops/ops_norm ops/ops_shape autograd/var)
  list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/${stem}_test.cc)
endforeach()
