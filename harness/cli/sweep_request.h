// From the command line to what a sweep is asked for: options of `run`, and those that `noise`
// shares with it. An Error names the offending value.
#pragma once

#include <string>

#include "harness/cli/options.h"
#include "harness/plan/plan.h"

namespace attn::cli {

inline constexpr const char* kNoiseFile = "noise.json";  // of the user's cache

// A sweep file among the words of the command line is read. An option that the verb does not have
// counts as not given.
SweepRequest request_from(const Arguments& arguments);
// "results/<UTC time>-NAME.jsonl"; "": sweep.
std::string default_output(const std::string& name);

}  // namespace attn::cli
