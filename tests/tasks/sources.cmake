# Tests of tasks/: list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/x_test.cc) or both_tests.
list(APPEND float_tests
  ${CMAKE_CURRENT_LIST_DIR}/catalog_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/data/aan_tsv_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/data/cifar10_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/data/files_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/data/imdb_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/data/listops_tsv_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/data/pathfinder_png_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/data/png_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/data/round_trip_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/golden_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/image_fit_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/image_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/listops_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/mqar_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/pathfinder_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/retrieval_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/snakes/heading_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/snakes/markers_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/snakes/raster_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/snakes/scene_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/task_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/text_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/shortcuts/fitted_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/shortcuts/ladder_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/shortcuts/ridge_test.cc)
