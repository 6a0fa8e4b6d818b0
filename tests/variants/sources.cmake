# Tests of variants/: list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/x_test.cc) or both_tests.
list(APPEND float_tests
  ${CMAKE_CURRENT_LIST_DIR}/api/attention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/catalog_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/api/declared_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/api/packing_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/softmax/softmax_accuracy_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/variants_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/api/decoder_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/softmax/edge_attention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/features/feature_maps_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/features/linear_attention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/lowrank/sequence_projection_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/softmax/softmax_attention_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/convolution/base_conv_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/convolution/conv_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/control/mean_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/recurrent/recurrent_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/hashing/reformer_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/sorting/sinkhorn_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/patterns/bigbird_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/patterns/window_patterns_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/scores/scores_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/patterns/graph_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/features/performer_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/api/shared_decoder_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/softmax/eviction_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/softmax/typed_cache_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/chunked/chunked_attention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/delta_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/decays_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/log_linear_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/mamba2_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/mesa_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/state_decoder_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/test_time_training_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/convolution/fft_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/convolution/long_conv_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/scores/mega_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/synthetic/mixing_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/synthetic/aft_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/scans/bilinear_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/scans/scans_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/scans/shift_filter_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/normalisers/softmax_one_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/normalisers/differential_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/normalisers/entmax_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/selection/topk_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/selection/dsa_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/selection/nsa_test.cc)
list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/api/recurrent_forms_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/lowrank/memory_compressed_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/lowrank/nystrom_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/hashing/clustered_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/lowrank/latents_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/softmax/biased_attention_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/normalisers/fox_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/lowrank/mla_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/hashing/routing_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/features/kernel_features_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/lowrank/oracle_rank_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/hashing/yoso_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/features/mimicry_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/block/paper_block_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/api/carrying_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/simpler_forms_test.cc)
