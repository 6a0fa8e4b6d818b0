// Whether a plug-in fits this program, by the marks in its file (entry.h): texts "NAME=VALUE" for
// version, headers, compiler, standard library, instruction set, checks and `real`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attn {

// The marks that the contents of a file hold, in their order.
std::vector<std::string> marks_in(std::string_view file);
// The mark of a plug-in in float that this program takes.
std::string own_mark();
// Why a file with these marks does not fit a program with the mark `own`: the first difference;
// "": it fits. `needs_double`: it must hold a mark in double too.
std::string why_unfit(const std::vector<std::string>& marks, const std::string& own,
                      bool needs_double);

}  // namespace attn
