# Writes a table "folder/name -> hash of the sources its figures depend on" as C++: a row names the code that it was measured
# with. Run at build time: cmake -DROOT=... -DOUT=... -P source_hashes.cmake
#
# A figure of a plug-in depends on its own file and on every other source that is not a plug-in's own: whatever is added to
# these folders counts, until it is named here as something that cannot change a figure.
set(bystanders # folders of harness/
  check        # accepts or refuses, computes no figure
  cli          # shows rows
  compare      # shows rows
  crossing     # plans lengths and shows rows
  growth       # shows rows
  plugin       # adds to the catalogues; the hash of its file tells a plug-in
  export       # shows rows
  store        # writes rows
  tables)      # shows rows
# Files of harness/plan, harness/run and harness/process that cannot change a figure either.
set(plan_bystanders # which cells there are, and what they will take
  amounts axes cells costs departures filter forecast grammar idle_flags labels machine_and_build pilots plan profile_texts profiles
  python_variants resolve rules rules_reader setting_names sweep_file toml_reader toml_text total_time training_settings
  variant_choices workloads)
set(run_bystanders # in which order cells are measured, and what becomes of their answers
  noise_floors pilot_runs protocol run run_line sweeper sweeper_gate sweeper_run_line time_left)
set(process_bystanders # how processes start and end
  interrupt outcome process python_process)
# A catalog only lists: a new plug-in leaves the others' rows as they are.
set(catalogs variants/catalog.cc variants/catalog.h tasks/catalog.cc tasks/catalog.h)

# The sources below these folders, relative to ROOT, in an order that does not depend on the machine.
function(sources_of result)
  list(TRANSFORM ARGN PREPEND ${ROOT}/ OUTPUT_VARIABLE patterns)
  list(TRANSFORM patterns APPEND /*)
  file(GLOB_RECURSE files LIST_DIRECTORIES false RELATIVE ${ROOT} ${patterns})
  list(FILTER files EXCLUDE REGEX "(^|/)(CMakeLists\\.txt|\\.[^/]*|[^/]*~|[^/]*\\.(cmake|md))$")
  list(REMOVE_ITEM files ${catalogs})
  list(FILTER files EXCLUDE REGEX "^variants/reference/") # computes no figure
  set(${result} ${files} PARENT_SCOPE)
endfunction()

# The names of the plug-ins that <folder>/CMakeLists.txt lists as <family>/<name>, each with its file: `own_<name>`, and `names`.
function(plugins_of folder)
  file(READ ${ROOT}/${folder}/CMakeLists.txt text)
  string(REGEX MATCH "set\\(${folder}[ \n]+([^)]*)\\)" list "${text}")
  string(REGEX MATCHALL "[a-z0-9_/]+" plugins "${CMAKE_MATCH_1}")
  set(names "")
  foreach(plugin IN LISTS plugins)
    get_filename_component(name ${plugin} NAME)
    if(NOT EXISTS ${ROOT}/${folder}/${plugin}.cc)
      message(FATAL_ERROR "${folder}/CMakeLists.txt lists ${plugin}: ${folder}/${plugin}.cc is not there")
    endif()
    list(APPEND names ${name})
    set(own_${name} ${folder}/${plugin}.cc PARENT_SCOPE)
  endforeach()
  set(names ${names} PARENT_SCOPE)
endfunction()

# Of names and contents, so that a file that moves or vanishes changes it too.
function(hash_of result)
  set(all "")
  foreach(file IN LISTS ARGN)
    file(SHA256 ${ROOT}/${file} hash)
    string(APPEND all "${file} ${hash}\n")
  endforeach()
  string(SHA256 hash "${all}")
  set(${result} ${hash} PARENT_SCOPE)
endfunction()

file(GLOB rooms LIST_DIRECTORIES true RELATIVE ${ROOT} ${ROOT}/harness/*)
list(JOIN bystanders "|" unable)
list(FILTER rooms EXCLUDE REGEX "^harness/(${unable})$")
sources_of(harness ${rooms})
foreach(room plan run process)
  list(JOIN ${room}_bystanders "|" unable)
  list(FILTER harness EXCLUDE REGEX "^harness/${room}/(${unable})\\.(h|cc|cc\\.in)$")
endforeach()

set(rows "")
foreach(folder variants tasks)
  if(folder STREQUAL "variants")
    plugins_of(variants)
    sources_of(shared core variants)
    list(APPEND shared ${harness})
  else()
    plugins_of(tasks) # a row of a task names its variant's hash too, and with it the harness
    sources_of(shared core tasks)
  endif()
  foreach(name IN LISTS names)
    list(REMOVE_ITEM shared ${own_${name}})
  endforeach()
  hash_of(common ${shared})
  string(SUBSTRING ${common} 0 16 hash)
  string(APPEND rows "    {\"${folder}/\", \"${hash}\"},\n") # what plug-ins loaded at run time share
  foreach(name IN LISTS names)
    hash_of(own ${own_${name}})
    string(SHA256 hash "${common} ${own}")
    string(SUBSTRING ${hash} 0 16 hash)
    string(APPEND rows "    {\"${folder}/${name}\", \"${hash}\"},\n")
  endforeach()
endforeach()
# What accepts or refuses a plug-in: checks that passed need not run again while this and the plug-in's own hash stay.
sources_of(judges harness/check)
file(GLOB references RELATIVE ${ROOT} ${ROOT}/variants/reference/*)
hash_of(hash ${judges} ${references})
string(SUBSTRING ${hash} 0 16 hash)
string(APPEND rows "    {\"harness/check\", \"${hash}\"},\n")
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[// Written by cmake/source_hashes.cmake at build time.
#include <string>
#include <utility>

#include "harness/cell/source_hash.h"

namespace attn {

std::string built_in_hash(std::string_view folder, std::string_view name) {
  static const std::pair<const char*, const char*> table[] = {
@rows@  };
  const std::string wanted = std::string(folder) + "/" + std::string(name);
  for (const auto& [known, hash] : table)
    if (wanted == known) return hash;
  return "";
}

}  // namespace attn
]])
