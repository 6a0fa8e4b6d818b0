// See training_settings.h; costs nothing but parsing.
#include "harness/plan/training_settings.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/check.h"
#include "harness/plan/typed_choice.h"
#include "harness/train/mimicry.h"
#include "harness/train/schedule.h"
#include "harness/train/train.h"

namespace attn {
namespace {

bool names(const Choice& choice, const char* setting) {
  return std::any_of(choice.begin(), choice.end(),
                     [&](const auto& given) { return given.first == setting; });
}

// A training that ends by itself needs a patience, and more steps than one of a fixed length.
Choice with_defaults(Choice choice) {
  if (!names(choice, "patience")) choice.emplace_back("patience", std::to_string(kWsdPatience));
  if (!names(choice, "steps")) choice.emplace_back("steps", std::to_string(kWsdSteps));
  return choice;
}

}  // namespace

Params training_settings(const Choice& choice, const std::vector<std::string>& tuned) {
  const auto is_tuned = [&](const char* name) {
    return std::find(tuned.begin(), tuned.end(), name) != tuned.end();
  };
  Params all = typed("training", training_params(), choice);
  if (is_wsd(all)) all = typed("training", training_params(), with_defaults(choice));
  std::vector<std::string> unused;
  if (mimicry_steps(all) == 0 && !is_tuned(kMimicry)) {
    unused.emplace_back(kMimicry);
    ATTN_CHECK(!mimicry_goes_on(all), "training: {}=end applies to mimicry=STEPS alone; add that",
               kMimicryUntil);
  }
  if (!mimicry_goes_on(all) && !is_tuned(kMimicryUntil)) unused.emplace_back(kMimicryUntil);
  if (!rounds_products(all) && !is_tuned(kTrainDtype)) unused.emplace_back(kTrainDtype);
  if (!is_wsd(all) && !is_tuned(kSchedule)) {
    for (const char* of_wsd : {kDecay, kMinDelta})
      ATTN_CHECK(!names(choice, of_wsd), "training: {} applies to schedule=wsd alone; add that",
                 of_wsd);
    unused.insert(unused.end(), {kSchedule, kDecay, kMinDelta});
  }
  return all.without(unused);
}

size_t different_values(const Setting& setting) {
  std::set<std::string> values;
  for (const std::string& text : setting.values)
    values.insert(typed("training", training_params(), {{setting.name, text}}).str());
  return values.size();
}

}  // namespace attn
