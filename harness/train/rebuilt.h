// A trained model built again, with other parameters of its variant, such as more rounds of hashing
// (Kitaev et al. 2020, arXiv:2001.04451, table 2), or for longer sequences, or the reason why that
// cannot be.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "harness/train/learner.h"
#include "harness/train/train.h"

namespace attn {

// Copies the learned weights of `from`, and those that moved beside them where their names and
// shapes are the same. Why the learned ones do not fit `to`, which then is as before; "": they were
// copied.
std::string copy_learned(const Learner& from, const Learner& to);

struct Rebuilt {
  std::unique_ptr<Learner> model;  // null: see `reason`
  std::string reason{};
};

// `spec` is that of `trained`, or of one for longer sequences, and a model of it answers `task`.
// The learned weights of the result are those of `trained`, whose names and shapes must be the
// same; its random weights are drawn as by a training with `params` on `task`. `params` may name a
// cache and a prompt too, see cached_score.h.
Rebuilt rebuilt(const TrainRequest& request, const Task& task, LearnerSpec spec,
                const Learner& trained, const std::map<std::string, ParamValue>& params);

}  // namespace attn
