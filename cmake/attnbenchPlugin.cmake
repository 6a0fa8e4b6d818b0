# attnbench_add_plugin(name VARIANTS file... TASKS file... [SOURCES file...]): lib<name>.so for `attnbench --plugin`.
# <stem>.cc of VARIANTS defines `VariantInfo <stem>()` in namespace attn::variants, of TASKS `TaskInfo <stem>()` in attn::tasks,
# as in attnbench's own folders. SOURCES: what they share. Variants and SOURCES are compiled twice, in float and, as namespace
# attn_f64, in double, in which gradients are checked. No library of attnbench is linked: the program has their symbols.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release: figures of a debug build say nothing" FORCE)
endif()
set(attnbench_entry ${CMAKE_CURRENT_LIST_DIR}/plugin_entry.cc.in)

# What the library's own headers and flags are, without the library.
function(attnbench_plugin_settings target)
  target_link_libraries(${target} PRIVATE attnbench::flags)
  if(NOT attnbench_HAS_HEADERS) # a wheel brings those of libraries
    target_link_libraries(${target} PRIVATE fmt::fmt Eigen3::Eigen)
  endif()
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
endfunction()

function(attnbench_add_plugin name)
  cmake_parse_arguments(ARG "" "" "VARIANTS;TASKS;SOURCES" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS OR NOT (ARG_VARIANTS OR ARG_TASKS))
    message(FATAL_ERROR "attnbench_add_plugin(${name} ${ARGN}): expected VARIANTS file... or TASKS file..., and perhaps SOURCES file...")
  endif()
  foreach(kind VARIANTS TASKS)
    set(declared_${kind} "")
    set(listed_${kind} "")
    foreach(file IN LISTS ARG_${kind})
      get_filename_component(stem ${file} NAME_WE)
      set(type VariantInfo)
      if(kind STREQUAL "TASKS")
        set(type TaskInfo)
      endif()
      string(TOLOWER ${kind} space)
      string(APPEND declared_${kind} "${type} ${stem}();\n")
      string(APPEND listed_${kind} "attn::${space}::${stem}, ")
    endforeach()
  endforeach()
  set(entry ${CMAKE_CURRENT_BINARY_DIR}/${name}_entry.cc)
  configure_file(${attnbench_entry} ${entry} @ONLY)

  add_library(${name} MODULE ${entry} ${ARG_VARIANTS} ${ARG_TASKS} ${ARG_SOURCES})
  attnbench_plugin_settings(${name})
  if(attnbench_HAS_DOUBLE)
    add_library(${name}_double OBJECT ${entry} ${ARG_VARIANTS} ${ARG_SOURCES})
    attnbench_plugin_settings(${name}_double)
    target_compile_definitions(${name}_double PRIVATE ATTN_DOUBLE attn=attn_f64)
    target_compile_options(${name}_double PRIVATE -O1) # it is not timed
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${name}_double>)
  endif()
endfunction()
