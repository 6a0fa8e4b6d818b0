// What a plug-in exports, and how it was built. A plug-in is a shared library with variants and
// tasks; attnbench_add_plugin (cmake/attnbenchPlugin.cmake) compiles its entry, in float and again
// in double, from the names of its sources. The program reads the mark in the file before it runs
// any of the plug-in's code.
#pragma once

#include <cstddef>  // defines the macros of the standard library

#include "core/base/real.h"
#include "harness/plugin/interface.h"  // ATTN_INTERFACE: version and hash of the headers

#define ATTN_TEXT_OF(x) #x
#define ATTN_TEXT(x) ATTN_TEXT_OF(x)

#if defined(__clang__)
#define ATTN_COMPILER "clang++ " ATTN_TEXT(__clang_major__)
#elif defined(__GNUC__)
#define ATTN_COMPILER "g++ " ATTN_TEXT(__GNUC__)
#else
#define ATTN_COMPILER "another compiler"
#endif

#if defined(_GLIBCXX_USE_CXX11_ABI)
#define ATTN_LIBRARY "libstdc++ ABI " ATTN_TEXT(_GLIBCXX_USE_CXX11_ABI)
#elif defined(_LIBCPP_ABI_VERSION)
#define ATTN_LIBRARY "libc++ ABI " ATTN_TEXT(_LIBCPP_ABI_VERSION)
#else
#define ATTN_LIBRARY "another"
#endif

#if defined(__AVX512F__)
#define ATTN_INSTRUCTIONS "AVX-512"
#elif defined(__AVX2__)
#define ATTN_INSTRUCTIONS "AVX2"
#elif defined(__SSE4_2__)
#define ATTN_INSTRUCTIONS "SSE4.2"
#elif defined(__ARM_NEON)
#define ATTN_INSTRUCTIONS "NEON"
#else
#define ATTN_INSTRUCTIONS "baseline"
#endif

#if defined(ATTN_SANITIZED)
#define ATTN_CHECKS "sanitizers"
#elif defined(ATTN_DEBUG)
#define ATTN_CHECKS "debug"
#else
#define ATTN_CHECKS "none"
#endif

// `real` is the last: a plug-in has one mark for each.
#ifdef ATTN_DOUBLE
#define ATTN_REAL "double"
#else
#define ATTN_REAL "float"
#endif

#define ATTN_MARK_BEGIN "attnbench plug-in|"
#define ATTN_PLUGIN_MARK                                                                   \
  ATTN_MARK_BEGIN ATTN_INTERFACE "|compiler=" ATTN_COMPILER "|library=" ATTN_LIBRARY       \
                                 "|instructions=" ATTN_INSTRUCTIONS "|checks=" ATTN_CHECKS \
                                 "|real=" ATTN_REAL

namespace attn {

struct VariantInfo;
struct TaskInfo;

struct PluginEntry {
  const char* mark;                  // ATTN_PLUGIN_MARK
  VariantInfo (*const* variants)();  // null behind the last
  TaskInfo (*const* tasks)();        // the same; of the entry in double: null alone
};

}  // namespace attn

#ifdef ATTN_DOUBLE
#define ATTN_PLUGIN_ENTRY attnbench_plugin_double
#else
#define ATTN_PLUGIN_ENTRY attnbench_plugin
#endif
extern "C" const attn::PluginEntry ATTN_PLUGIN_ENTRY;
