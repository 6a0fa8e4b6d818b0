// Checks of the contract of variants and tasks. The conformance tests, `attnbench check` and `run`
// call these checks; `run` does so before it publishes a number. Each source describes its checks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/check/result.h"
#include "tasks/api/task.h"
#include "variants/api/variant_info.h"

namespace attn {

// Runs the checks that apply to the traits of the variant, or only the check named `only`. `params`
// override the defaults. An exception inside a check is a failed result; check_variant throws Error
// only for wrong parameters. A variant of the catalogue is also checked in double; the names of
// these results end in "(double)".
std::vector<attn_check::Result> check_variant(const VariantInfo& info,
                                              const std::map<std::string, ParamValue>& params,
                                              attn_check::Level level,
                                              const std::string& only = "");
// The checks of outputs, masks, gradients and decoding with the head size and the causality of
// `like` on so many threads: what `run` asks before it publishes figures of that shape. Outputs are
// compared at a length past a tile with up to 4 heads, gradients at 17 positions with all heads. In
// float alone. With kv_heads, the check of decoding alone: so many heads of keys and values stand
// for the query heads. Of a shape in bfloat16, the check of bfloat16 alone;
// of one with a cache of fewer bits, the check of caches alone.
std::vector<attn_check::Result> check_variant_at(const VariantInfo& info,
                                                 const std::map<std::string, ParamValue>& params,
                                                 const AttentionShape& like, int thread_count,
                                                 int64_t kv_heads = 0);
std::vector<attn_check::Result> check_task(const TaskInfo& info,
                                           const std::map<std::string, ParamValue>& params,
                                           attn_check::Level level, const std::string& only = "");

// The valid values of `only`, in the order of the checks.
std::vector<std::string> variant_check_names(const VariantInfo& info);
std::vector<std::string> task_check_names();

// The checks that a variant of the catalogue runs in double too.
std::vector<std::string> double_check_names(const VariantInfo& info);

// One line of a report, which ends in a newline: the outcome ("ok", "RED" or "skip", in colour on
// request), the subject, the check, what was found.
std::string report_line(const attn_check::Result& result, bool color);

// What a reader of the results of one variant must know beside them, a sentence each: which red
// check to mend first, where several are; that a wrong formula would not be seen, where neither a
// reference is declared nor equality with exact attention.
std::vector<std::string> remarks_on(const std::vector<attn_check::Result>& results,
                                    bool has_formula);

bool all_passed(const std::vector<attn_check::Result>& results);

}  // namespace attn
