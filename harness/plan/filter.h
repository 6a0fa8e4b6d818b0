// The conditions of a sweep, `include` and `exclude`, on cells.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/params.h"
#include "harness/cell/key.h"
#include "harness/plan/rules.h"

namespace attn {

class Filter {
 public:
  // Error where a variant, a task, a parameter or a training setting is unknown.
  explicit Filter(const Rules& rules);
  bool keeps(const CellKey& key) const;
  bool keeps_all() const { return include_.empty() && exclude_.empty(); }

 private:
  struct Wanted {  // a name, and for each parameter the values that it may have
    std::string name;
    std::vector<std::pair<std::string, std::vector<ParamValue>>> params;
    std::map<std::string, ParamValue> at_default = {};  // what a key leaves out; Params::for_key()
  };
  struct Typed {  // a Condition whose texts are values
    Condition condition;
    std::vector<Wanted> variants, tasks;
    Wanted training;
  };
  static Typed typed_condition(const Condition& condition);
  static bool has_params(const Wanted& wanted, const Params& params);
  static bool is_wanted(const std::vector<Wanted>& any, const Plugin& plugin);
  static bool matches(const Typed& typed, const CellKey& key);
  static bool matches_any(const std::vector<Typed>& conditions, const CellKey& key);

  std::vector<Typed> include_, exclude_;
};

}  // namespace attn
