// See training_settings.h; costs nothing but parsing.
#include "harness/plan/training_settings.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/check.h"
#include "harness/plan/typed_choice.h"
#include "harness/train/mimicry.h"
#include "harness/train/train.h"

namespace attn {
Params training_settings(const Choice& choice, const std::vector<std::string>& tuned) {
  Params all = typed("training", training_params(), choice);
  const bool is_named = std::find(tuned.begin(), tuned.end(), kMimicry) != tuned.end();
  return mimicry_steps(all) > 0 || is_named ? all : all.without({kMimicry});
}

size_t different_values(const Setting& setting) {
  std::set<std::string> values;
  for (const std::string& text : setting.values)
    values.insert(typed("training", training_params(), {{setting.name, text}}).str());
  return values.size();
}

}  // namespace attn
