// A SPEC that names one thing with one value a parameter, as `info`, `check`, `sample` and `apply`
// take it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn::cli {

struct Chosen {
  const VariantInfo* variant = nullptr;  // exactly one of the two is set
  const TaskInfo* task = nullptr;
  std::map<std::string, ParamValue> params;  // as given, typed and checked
  std::string block = {};                    // "mixer" or "paper" where the SPEC says so
};

// The variant or the task of that name, or both where both have it and take the parameters.
std::vector<Chosen> choose(const std::string& spec);
Chosen choose_variant(const std::string& spec);  // Error when it is not a variant
Chosen choose_task(const std::string& spec);

}  // namespace attn::cli
