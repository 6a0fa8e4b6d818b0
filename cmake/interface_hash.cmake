# Writes the version and a hash of the headers that plug-ins are compiled with as a macro. Run at build time:
# cmake -DROOT=... -DOUT=... -DVERSION=... -P interface_hash.cmake
set(all "")
foreach(folder core variants tasks)
  file(GLOB_RECURSE headers LIST_DIRECTORIES false RELATIVE ${ROOT} ${ROOT}/${folder}/*.h)
  foreach(header IN LISTS headers ITEMS harness/plugin/entry.h)
    file(SHA256 ${ROOT}/${header} hash)
    string(APPEND all "${header} ${hash}\n")
  endforeach()
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUT} "// Written by cmake/interface_hash.cmake at build time.
#pragma once
#define ATTN_INTERFACE \"version=${VERSION}|interface=${hash}\"
")
