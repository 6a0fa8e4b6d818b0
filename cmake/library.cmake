# attn_library(name SOURCES file... DEPS library... [LINKS target...] [FAMILIES file...] [ALONE file...] [FLOAT_SOURCES file...]
#   [FLOAT_ONLY] [COLD] [PRECOMPILED header or target])
# makes attn_<name> and, unless FLOAT_ONLY, attn_<name>_f64: the same sources, without FLOAT_SOURCES, with real = double in
# namespace attn_f64. It depends on those of DEPS that exist in double.
# COLD: code whose speed does not matter is compiled with -O1, which takes half the time. The double build is
# cold: it checks gradients and computes references. COLD code that shares the precompiled header of attn_store
# checks the indices of the standard library's containers: a wrong one ends the program, as it would under a sanitizer.
# Headers cost more than code here, so several sources are compiled as one ("unity build"), and the headers of other libraries
# are compiled once ("precompiled header"). FAMILIES: sources that are compiled with others of their folder, as SOURCES are with
# each other. ALONE: sources that are compiled one by one, such as kernels and what Highway includes again for each instruction
# set. PRECOMPILED: in place of the precompiled header of core. -DATTN_UNITY=OFF compiles every file alone and without a
# precompiled header.
option(ATTN_UNITY "compile several sources as one, with a precompiled header" ON)
# The more sources are compiled as one, the less time they take in all; the fewer, the sooner an edit is compiled and the more cores
# are busy.
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR batch "64 / ${cores}")
if(batch GREATER 32)
  set(batch 32)
elseif(batch LESS 8)
  set(batch 8)
endif()
set(ATTN_UNITY_BATCH ${batch} CACHE STRING "sources that are compiled as one")

# attn_precompile(target header) compiles the header once for all sources of the target; in place of the header, another target
# names the one whose precompiled header serves here too.
function(attn_precompile target header)
  if(NOT ATTN_UNITY)
    return()
  endif()
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>) # so that ccache sees through it
  if(TARGET ${header})
    target_precompile_headers(${target} REUSE_FROM ${header})
  else()
    target_precompile_headers(${target} PRIVATE ${header})
  endif()
endfunction()

# attn_unite(target) compiles the sources of the target several at a time.
function(attn_unite target)
  if(NOT ATTN_UNITY)
    return()
  endif()
  # g++ takes a source that is included for a header, where types of an anonymous namespace would be a mistake.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${ATTN_UNITY_BATCH})
endfunction()

# attn_group(name file...) makes groups of ATTN_UNITY_BATCH sources, for targets whose sources are compiled by groups.
function(attn_group name)
  set(count 0)
  foreach(file IN LISTS ARGN)
    math(EXPR group "${count} / ${ATTN_UNITY_BATCH}")
    math(EXPR count "${count} + 1")
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${name}_${group})
  endforeach()
endfunction()

function(attn_library name)
  cmake_parse_arguments(ARG "FLOAT_ONLY;COLD" "PRECOMPILED" "SOURCES;DEPS;LINKS;FAMILIES;ALONE;FLOAT_SOURCES" ${ARGN})
  set(kinds "")
  if(ATTN_F64 AND NOT ARG_FLOAT_ONLY)
    set(kinds "_f64")
  endif()
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(families "")
  foreach(file IN LISTS ARG_FAMILIES)
    get_filename_component(family ${file} DIRECTORY)
    list(APPEND families ${family})
    list(APPEND of_${family} ${file})
  endforeach()
  list(REMOVE_DUPLICATES families)
  foreach(family IN LISTS families)
    attn_group(${family} ${of_${family}})
  endforeach()
  attn_group(others ${ARG_SOURCES})
  foreach(kind IN LISTS kinds ITEMS "")
    set(target attn_${name}${kind})
    add_library(${target} STATIC ${ARG_SOURCES} ${ARG_FAMILIES} ${ARG_ALONE})
    target_link_libraries(${target} PUBLIC attn_flags fmt::fmt ${ARG_LINKS})
    if(ARG_COLD OR kind)
      target_compile_options(${target} PRIVATE -O1)
    endif()
    if(ARG_COLD AND ARG_PRECOMPILED) # sources that share a precompiled header share their macros
      target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
    endif()
    foreach(dep IN LISTS ARG_DEPS)
      if(TARGET attn_${dep}${kind})
        target_link_libraries(${target} PUBLIC attn_${dep}${kind})
      endif()
    endforeach()
    if(NOT kind)
      target_sources(${target} PRIVATE ${ARG_FLOAT_SOURCES})
    else()
      target_compile_definitions(${target} PUBLIC ATTN_DOUBLE attn=attn_f64)
    endif()
    attn_unite(${target})
    if(families)
      set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
    endif()
    if(ARG_PRECOMPILED)
      attn_precompile(${target} ${ARG_PRECOMPILED})
    else()
      attn_precompile(${target} attn_core${kind})
    endif()
  endforeach()
endfunction()

# attn_plugins(library list): "<family>/<name>" for each plug-in. Writes the include file that the catalog expands,
# PLUGIN(<name>) a line, and adds the sources.
function(attn_plugins name)
  set(text "// Written by CMake from the list in ${name}/CMakeLists.txt.\n")
  foreach(plugin IN LISTS ARGN)
    get_filename_component(stem ${plugin} NAME)
    string(APPEND text "PLUGIN(${stem})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/lists/${name}/list.inc CONTENT "${text}" @ONLY)
  list(TRANSFORM ARGN APPEND .cc)
  attn_group(plugins ${ARGN})
  foreach(kind _f64 "")
    if(TARGET attn_${name}${kind})
      target_sources(attn_${name}${kind} PRIVATE ${ARGN})
      target_include_directories(attn_${name}${kind} PRIVATE ${PROJECT_BINARY_DIR}/lists)
    endif()
  endforeach()
endfunction()
