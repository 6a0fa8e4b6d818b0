// The grammar of what runs: specs "name[param=value,param=[v,v]]" and values "v,v", "a:b:*2",
// "a:b:+k" (ends included; 4k is 4096). Text in, text out: what a value means is known to
// ParamSpec. Every Error is one line that quotes the offending text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attn {

// One parameter and the values it takes, in the order written.
struct Setting {
  std::string name;
  std::vector<std::string> values;
};

struct Spec {
  std::string name;  // of a stack, its text
  std::vector<Setting> settings;
  // Of a stack such as "full+2*truncated[window=[32,64]]", each with how often it follows itself.
  std::vector<std::pair<Spec, int64_t>> layers = {};
};

inline constexpr size_t kMostCells = 20'000;  // of a sweep: planning takes up to 1 ms a cell

using Choice = std::vector<std::pair<std::string, std::string>>;  // one value for each parameter

// "linformer[rank=[64,128]]", "full+2*linear". The name may be python:FILE.py:NAME, see
// python_variants.h.
Spec parse_spec(std::string_view text);
std::vector<Setting> parse_settings(
    std::string_view text);  // "steps=500,width=[64,128]"; "" gives none
// "64,128" or "256:4096:*2" or "[64,128:512:+128]": at least one value. `what` names the owner in
// an Error.
std::vector<std::string> expand_values(std::string_view what, std::string_view text);

std::vector<Choice> cross_product(
    const std::vector<Setting>& settings);  // the last setting varies fastest
// `base` overlaid with `over`: values of the same name are replaced, others are added.
std::vector<Setting> overlay(std::vector<Setting> base, const std::vector<Setting>& over);
std::string join(const std::vector<std::string>& words, std::string_view separator = ",");

}  // namespace attn
