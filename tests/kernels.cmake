# The tests of what is compiled anew for each instruction set, and of the ops and variants that stand on it: those that are run for
# another processor, under emulation (preset neon). Tests of formulas, memory and threads are the same on every processor.
set(float_kernels core/base/parallel core/simd/row_tiles core/tensor/tensor)
set(both_kernels
  core/simd/attention_rows core/simd/feature_rows core/simd/listed_rows core/simd/row_kernels core/simd/product core/simd/quantised_product core/simd/row_ops core/simd/softmax_rows
  core/autograd/var
  core/ops/ops_elementwise core/ops/ops_feed_forward core/ops/ops_linear
  core/ops/ops_norm core/ops/ops_shape
  variants/softmax/edge_attention variants/softmax/softmax_attention
  variants/features/feature_maps variants/features/linear_attention variants/chunked/chunked_attention variants/lowrank/sequence_projection)
attn_test_sources(float_kernels _test.cc)
attn_test_sources(both_kernels _test.cc)
set(float_tests ${CMAKE_CURRENT_SOURCE_DIR}/core/base/allocations.cc ${float_kernels})
set(both_tests ${both_kernels})
