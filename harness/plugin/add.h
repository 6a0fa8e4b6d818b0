// Adds the variants of a plug-in to a catalogue. Compiled in float and in double, so it is in a
// namespace of its own: each function reads an entry (entry.h) of its own precision.
#pragma once

#include <string>
#include <vector>

namespace attn_plugin {

bool has_double();  // false in builds without the double twins (ATTN_F64=OFF)

// `entry` points to a PluginEntry of that precision. The names that were added; Error where one
// cannot be added.
std::vector<std::string> add_float(const void* entry, const std::string& file_hash);
std::vector<std::string> add_double(const void* entry, const std::string& file_hash);

}  // namespace attn_plugin
