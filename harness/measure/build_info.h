// The version, compiler and commit of this program. CMake generates the values; see CMakeLists.txt.
#pragma once

namespace attn {

struct BuildInfo {
  const char *version, *compiler, *flags, *build_type, *libraries;
};
extern const BuildInfo kBuildInfo;

// Generated at every build; empty without git or without a commit.
extern const char* const kCommit;
extern const char* const kDirty;  // "true", "false"

}  // namespace attn
