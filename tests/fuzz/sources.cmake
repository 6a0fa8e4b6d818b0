# The fuzz targets: each is NAME_fuzz.cc, with inputs in corpus/NAME.txt. Ordinary builds run the inputs in attn_tests; CMakeLists.txt
# here makes the programs of scripts/fuzz.
set(fuzz_targets rows schema reply spec config sweep npy png listops aan imdb cifar10 pathfinder)
list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/corpus_test.cc ${CMAKE_CURRENT_LIST_DIR}/folder_of.cc)
foreach(name IN LISTS fuzz_targets)
  list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/${name}_fuzz.cc)
endforeach()
