# Tests of harness/, a list for each group of folders.
foreach(group includes check measure_store model_train sweep tables)
  include(${CMAKE_CURRENT_LIST_DIR}/${group}.cmake OPTIONAL)
endforeach()
