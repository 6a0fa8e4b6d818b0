// See setting_names.h.
#include "harness/plan/setting_names.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace attn {
namespace {

constexpr std::pair<std::string_view, const char*> kShortNames[] = {{"lr", "learning_rate"},
                                                                    {"wd", "weight_decay"}};

}  // namespace

std::vector<Setting> with_full_names(std::vector<Setting> settings) {
  for (Setting& setting : settings)
    for (const auto& [brief, name] : kShortNames) {
      if (setting.name != brief) continue;
      const bool is_twice =
          std::any_of(settings.begin(), settings.end(),
                      [full = name](const Setting& other) { return other.name == full; });
      ATTN_CHECK(!is_twice, "training: {} is {}, which is given too", brief, name);
      setting.name = name;
    }
  return settings;
}

std::vector<Setting> training_texts(std::string_view text) {
  return with_full_names(parse_settings(text));
}

std::string with_usual_rates(const std::string& text) {
  const bool is_alone = text == "learning_rate" || text == "lr";
  return is_alone ? "learning_rate=[5e-4,1e-3,2e-3,4e-3,8e-3,16e-3]" : text;
}

}  // namespace attn
