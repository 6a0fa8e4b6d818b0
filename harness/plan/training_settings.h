// Settings of trainings, from text to typed: --train, --tune, and `training` and `tuning` of sweep
// files.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/params.h"
#include "harness/plan/grammar.h"

namespace attn {

// All settings of a training, but no `mimicry` of 0, no `schedule` of cosine and nothing that only
// wsd reads, unless they are tuned: rows that were measured before there were such keep their ids.
Params training_settings(const Choice& choice, const std::vector<std::string>& tuned = {});
size_t different_values(const Setting& setting);

}  // namespace attn
