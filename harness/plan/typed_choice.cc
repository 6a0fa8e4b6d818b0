// See typed_choice.h.
#include "harness/plan/typed_choice.h"

namespace attn {

std::map<std::string, ParamValue> typed_choice(std::string_view owner,
                                               const std::vector<ParamSpec>& specs,
                                               const Choice& choice) {
  std::map<std::string, ParamValue> given;
  for (const auto& [name, text] : choice) {
    given[name] = text;  // an unknown name is refused below, by Params
    for (const ParamSpec& spec : specs)
      if (spec.name == name) given[name] = spec.parse(owner, text);
  }
  return given;
}

Params typed(std::string_view owner, const std::vector<ParamSpec>& specs, const Choice& choice) {
  return Params(owner, specs, typed_choice(owner, specs, choice));
}

}  // namespace attn
