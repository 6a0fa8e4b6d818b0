# The tests that ThreadSanitizer is for: what starts threads, what threads share, every kernel at two threads or more (by the
# contract checks named below). Preset tsan-all runs the others too.
set(threaded
  core/memory core/no_memory core/parallel core/recycled core/row_tiles core/tensor core/var
  core/ops_feed_forward core/ops_linear core/ops_matmul core/ops_norm
  variants/attention variants/relu variants/shared_inputs variants/kernels/cached variants/kernels/decoder
  variants/kernels/edge_attention variants/kernels/linear_attention variants/kernels/sequence_projection
  variants/kernels/shared_decoder variants/kernels/softmax_attention
  tasks/task tasks/shortcuts/ladder
  harness/batches harness/evaluate harness/fidelity harness/pair_batches harness/steady_step harness/train harness/workload
  conformance/conformance)
list(TRANSFORM threaded PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
list(TRANSFORM threaded APPEND _test.cc)
foreach(file IN LISTS threaded)
  if(NOT file IN_LIST float_tests AND NOT file IN_LIST both_tests)
    message(FATAL_ERROR "tests/threads.cmake names ${file}, which is no test")
  endif()
endforeach()
set(float_tests ${CMAKE_CURRENT_SOURCE_DIR}/core/allocations.cc ${threaded})
set(both_tests "")
# Of the contract checks, those that start threads.
set(threaded_checks "*Conformance*_threads:*Conformance*_determinism")
