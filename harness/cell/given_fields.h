// The lists of fields of what a variant was given beside its parameters: widths that were chosen
// for it, and a search of settings. Private to harness/cell; see row_fields.h.
#pragma once

#include "harness/cell/row.h"

namespace attn {

template <class Archive>
void fields(Archive& archive, LayerSizes& sizes) {
  archive("width", sizes.width);
  archive("feed_forward", sizes.feed_forward);
  archive("parameters", sizes.parameters);
  archive("flops", sizes.flops);
}

template <class Archive>
void fields(Archive& archive, Trial& trial) {
  archive("round", trial.round);
  archive("choices", trial.choices);
}

template <class Archive>
void fields(Archive& archive, SearchEffort& search) {
  archive("choices", search.choices);
  archive("trainings", search.trainings);
  archive("steps", search.steps);
}

}  // namespace attn
