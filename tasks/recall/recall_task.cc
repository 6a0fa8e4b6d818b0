// Labels, lengths and distances of the recall tasks; see recall_task.h for the costs.
#include "tasks/recall/recall_task.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/rng.h"

namespace attn::recall {

RecallTask::RecallTask(const Params& params, int64_t vocab, int64_t classes)
    : Task(params),
      shape_{.length = params.integer("length"),
             .vocab = vocab,
             .classes = classes,
             .per_token = true,
             .causal = true} {}

void RecallTask::clear_labels(Example& e) const {
  e.target.assign(static_cast<size_t>(length()), kIgnoredLabel);
  e.distances.assign(static_cast<size_t>(length()), -1);
}

void RecallTask::set_label(Example& e, size_t position, size_t source) {
  e.target[position] = e.tokens[source];
  e.distances[position] = static_cast<int32_t>(position - source);
}

LengthRange::LengthRange(const Params& params, std::string_view task, int64_t shortest)
    : least_(params.integer("min_length")), most_(params.integer("length")) {
  if (least_ == 0) least_ = most_;
  ATTN_CHECK(shortest <= least_ && least_ <= most_,
             "{}: min_length={} is neither 0 nor from {} to length={}", task, least_, shortest,
             most_);
}

int64_t LengthRange::draw(Rng& random) const {
  return least_ < most_ ? random.between(least_, most_) : most_;
}

Gaps gaps_of(const Example& e) {
  Gaps gaps;
  double sum = 0;
  for (const int32_t distance : e.distances) {
    if (distance < 0) continue;
    const double gap = distance;
    sum += gap;
    gaps.least = gaps.labels == 0 ? gap : std::min(gaps.least, gap);
    gaps.most = std::max(gaps.most, gap);
    gaps.labels++;
  }
  gaps.mean = sum / gaps.labels;
  return gaps;
}

}  // namespace attn::recall
