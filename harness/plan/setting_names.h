// Names of training settings in text: --train, --tune, and `training` and `tuning` of sweep files.
// The short names lr and wd are taken there; rows hold the full ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/plan/grammar.h"

namespace attn {

std::vector<Setting> with_full_names(std::vector<Setting> settings);
std::vector<Setting> training_texts(std::string_view text);  // "lr=2e-3,steps=[500,1000]"
// The choices that `text` of --tune stands for: a learning rate without values has six over a
// factor of 32; else as it is.
std::string with_usual_rates(const std::string& text);

}  // namespace attn
