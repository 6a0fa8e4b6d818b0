# Writes a table "folder/name -> hash of the sources its figures depend on" as C++: a row names the code that it was measured
# with. Run at build time: cmake -DROOT=... -DOUT=... -P source_hashes.cmake
function(hash_of result)
  set(all "")
  foreach(file IN LISTS ARGN)
    file(SHA256 ${file} hash)
    string(APPEND all ${hash})
  endforeach()
  string(SHA256 hash "${all}")
  string(SUBSTRING ${hash} 0 16 hash)
  set(${result} ${hash} PARENT_SCOPE)
endfunction()

file(GLOB shared ${ROOT}/core/*.h ${ROOT}/core/*.cc ${ROOT}/core/kernels/*
  ${ROOT}/variants/attention.h ${ROOT}/variants/attention.cc ${ROOT}/variants/kernels/*
  ${ROOT}/harness/model/*.h ${ROOT}/harness/model/*.cc ${ROOT}/harness/measure/*.h ${ROOT}/harness/measure/*.cc
  ${ROOT}/harness/train/*.h ${ROOT}/harness/train/*.cc)
# All folders below tasks/: readers, drawing, shortcuts.
file(GLOB task_shared ${ROOT}/tasks/task.h ${ROOT}/tasks/task.cc ${ROOT}/tasks/*/*.h ${ROOT}/tasks/*/*.cc ${ROOT}/core/rng.*)
set(rows "")
foreach(folder variants tasks)
  file(GLOB files ${ROOT}/${folder}/*.cc)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    if(name MATCHES "^(attention|catalog|task)$")
      continue()
    endif()
    if(folder STREQUAL "variants")
      hash_of(hash ${shared} ${file})
    else()
      hash_of(hash ${task_shared} ${file})
    endif()
    string(APPEND rows "    {\"${folder}/${name}\", \"${hash}\"},\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[// Written by cmake/source_hashes.cmake at build time.
#include <array>
#include <string>
#include <utility>

#include "harness/sweep/key.h"

namespace attn {

std::string source_hash(std::string_view folder, std::string_view name) {
  static const std::pair<const char*, const char*> table[] = {
@rows@  };
  const std::string wanted = std::string(folder) + "/" + std::string(name);
  for (const auto& [known, hash] : table)
    if (wanted == known) return hash;
  return "";
}

}  // namespace attn
]])
