# Tests of variants/: list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/x_test.cc) or both_tests.
list(APPEND float_tests
  ${CMAKE_CURRENT_LIST_DIR}/api/attention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/catalog_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/api/counted_cost_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/initial_weights_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/softmax/softmax_accuracy_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/shared_inputs_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/api/skip_reasons_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/api/step_cost_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/api/visible_pairs_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/variants_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/api/decoder_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/softmax/band_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/softmax/edge_attention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/features/feature_maps_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/features/linear_attention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/lowrank/sequence_projection_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/softmax/forward_layout_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/softmax/softmax_attention_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/convolution/conv_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/control/mean_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/recurrent/recurrent_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/convolution/window_mlp_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/hashing/reformer_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/sorting/sinkhorn_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/synthetic/synthesizer_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/patterns/bigbird_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/patterns/local_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/patterns/longformer_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/patterns/sparse_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/scores/additive_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/patterns/graph_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/scores/relu_test.cc)
list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/patterns/cached_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/features/performer_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/api/shared_decoder_test.cc)
list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/api/gates_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/chunked/chunked_attention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/delta_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/fixed_decay_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/gla_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/log_linear_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/mamba2_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/mesa_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/retention_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/rwkv_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/state_decoder_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/chunked/test_time_training_test.cc)
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/convolution/fft_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/convolution/hyena_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/convolution/long_conv_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/scores/gau_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/scores/mega_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/synthetic/fnet_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/synthetic/gmlp_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/synthetic/aft_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/scans/scans_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/normalisers/softmax_one_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/patterns/sinks_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/normalisers/differential_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/normalisers/entmax_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/normalisers/qk_norm_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/normalisers/sigmoid_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/normalisers/talking_heads_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/selection/topk_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/selection/moba_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/selection/dsa_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/selection/nsa_test.cc)
list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/api/recurrent_forms_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/lowrank/memory_compressed_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/patterns/dilated_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/chunked/path_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/lowrank/nystrom_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/hashing/clustered_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/lowrank/latents_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/softmax/biased_attention_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/normalisers/fox_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/lowrank/induced_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/lowrank/mla_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/hashing/routing_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/features/kernel_features_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/lowrank/oracle_rank_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/patterns/hierarchical_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/features/gated_rfa_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/hashing/yoso_test.cc)
list(APPEND both_tests ${CMAKE_CURRENT_LIST_DIR}/features/mimicry_test.cc)
