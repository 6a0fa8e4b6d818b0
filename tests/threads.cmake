# The tests that ThreadSanitizer is for: what starts threads, what threads share, every kernel at two threads or more (by the
# contract checks named below). Preset tsan-all runs the others too.
set(threaded
  core/base/memory core/base/parallel core/simd/row_tiles core/tensor/tensor core/autograd/var
  core/ops/ops_feed_forward core/ops/ops_linear core/ops/ops_norm
  variants/api/attention variants/api/packing variants/scores/scores variants/api/decoder
  variants/softmax/edge_attention variants/features/linear_attention variants/chunked/chunked_attention variants/lowrank/sequence_projection
  variants/api/shared_decoder variants/softmax/softmax_attention variants/softmax/typed_cache
  tasks/api/task tasks/shortcuts/ladder
  harness/train/batches harness/train/evaluate harness/measure/fidelity harness/train/steady_step harness/train/train harness/measure/workload
  conformance/conformance)
attn_test_sources(threaded _test.cc)
set(float_tests ${CMAKE_CURRENT_SOURCE_DIR}/core/base/allocations.cc ${threaded})
set(both_tests "")
# Of the contract checks, those that start threads.
set(threaded_checks "*Conformance*_threads:*Conformance*_determinism:*Conformance*_packed")
