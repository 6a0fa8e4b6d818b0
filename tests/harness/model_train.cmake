# Tests of harness/model and harness/train.
list(APPEND both_tests
  ${CMAKE_CURRENT_LIST_DIR}/encoder_decoder_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/encoder_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/greedy_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/pairs_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/unfold_head_test.cc)
list(APPEND float_tests
  ${CMAKE_CURRENT_LIST_DIR}/batches_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/evaluate_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/kinds_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/layer_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/lengths_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/mixer_layer_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/pair_batches_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/optimizer_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/residual_blocks_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/sequence_learner_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/steady_step_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/train_error_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/train_test.cc)
