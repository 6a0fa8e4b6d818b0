// Mini-batches of a task: fixed ones to score on, and an endless stream to train on, generated
// ahead in the background.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/model/encoder.h"
#include "tasks/api/task.h"

namespace attn {

// Examples 0 .. count-1 of `split`, in order; the last batch may be smaller.
std::vector<Batch> split_batches(const Task& task, uint64_t seed, Split split, int64_t count,
                                 int64_t batch_size);

// The task's `train_examples` examples over and over, in a new permutation each epoch; batches run
// on across the end of an epoch. The order depends on the seed alone. Examples are made once and
// kept while all of them fit `cache_bytes`.
class TrainingStream {
 public:
  struct Options {
    bool background = true;  // a thread of its own fills a queue of kAhead batches
    int64_t cache_bytes = int64_t{256} << 20;
  };
  static constexpr int kAhead =
      4;  // enough to ride out one slow example, small enough to stay in cache

  TrainingStream(const Task& task, uint64_t seed, int64_t batch_size);
  TrainingStream(const Task& task, uint64_t seed, int64_t batch_size, Options options);
  ~TrainingStream();
  const Batch& next();  // valid until the next call; rethrows what the task threw

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attn
