// Mini-batches of a task: a fixed list for evaluation, and an endless stream for training, which a
// background thread generates in advance.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/model/encoder.h"
#include "tasks/api/task.h"

namespace attn {

// Examples first .. first + size - 1 of `split`; with their slices where that is the test split.
Batch batch_of(const Task& task, uint64_t seed, Split split, int64_t first, int64_t size);
// Examples 0 .. count-1 of `split`, in order; the last batch may be smaller.
std::vector<Batch> split_batches(const Task& task, uint64_t seed, Split split, int64_t count,
                                 int64_t batch_size);

// An endless stream of the `train_examples` training examples of a task, with a new permutation in
// each epoch. A batch may contain examples of two epochs. The order depends only on the seed. If
// all examples fit `cache_bytes`, each is generated only once.
class TrainingStream {
 public:
  struct Options {
    bool background = true;  // a background thread fills a queue of kAhead batches
    int64_t cache_bytes = int64_t{256} << 20;
  };
  static constexpr int kAhead =
      4;  // covers the delay of one slow example, and the batches still fit the cache

  TrainingStream(const Task& task, uint64_t seed, int64_t batch_size);
  TrainingStream(const Task& task, uint64_t seed, int64_t batch_size, Options options);
  ~TrainingStream();
  const Batch& next();  // valid until the next call; rethrows an exception of the task

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attn
