# Tests of variants/: list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/x_test.cc) or both_tests.
list(APPEND float_tests
  ${CMAKE_CURRENT_LIST_DIR}/attention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/catalog_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/counted_cost_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/kernels/softmax_accuracy_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/shared_inputs_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/visible_pairs_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/variants_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/kernels/decoder_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/kernels/edge_attention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/kernels/feature_maps_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/kernels/linear_attention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/kernels/sequence_projection_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/kernels/softmax_attention_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/conv_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/mean_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/recurrent_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/window_mlp_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/reformer_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/sinkhorn_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/synthesizer_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/bigbird_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/local_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/longformer_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/sparse_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/additive_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/graph_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/relu_test.cc)
list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/kernels/cached_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/performer_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/kernels/shared_decoder_test.cc)
