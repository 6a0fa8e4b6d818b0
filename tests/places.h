// Where the tests find the sources, the program and the guide's variant. The build writes the
// answers into one generated file, so that no other object depends on the folder that it was built
// in.
#pragma once

#include <filesystem>

namespace attn {

std::filesystem::path source_folder();
std::filesystem::path program_file();        // the command line, attnbench
std::filesystem::path guide_variant_file();  // the variant that CONTRIBUTING.md prints

}  // namespace attn
