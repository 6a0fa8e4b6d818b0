# The fuzz targets: functions of *_fuzz.cc, each with inputs in corpus/NAME.txt. Ordinary builds run the inputs in attn_tests;
# CMakeLists.txt here makes the programs of scripts/fuzz, which reads this line too.
set(fuzz_targets rows schema reply spec config sweep npy png listops aan imdb cifar10 pathfinder plain_text)
set(fuzz_sources arrays_fuzz.cc rows_fuzz.cc sources_fuzz.cc sweep_fuzz.cc)
list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/corpus_test.cc ${CMAKE_CURRENT_LIST_DIR}/folder_of.cc)
foreach(source IN LISTS fuzz_sources)
  list(APPEND float_tests ${CMAKE_CURRENT_LIST_DIR}/${source})
endforeach()
