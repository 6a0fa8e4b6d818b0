// Writers of the released formats that sources.h reads. They write generated examples for other
// programs, and for tests that read the files back.
#pragma once

#include <cstdint>
#include <string>

#include "tasks/api/task.h"

namespace attn {

// The released format of one task.
struct ReleasedFormat {
  std::string name;  // "CIFAR-10 binary batches"
  // The number of training examples per validation example and per test example. The readers of
  // some formats split the examples by shares.
  int64_t train_share = 1;
  // The folder name of the release, such as "aclImdb". Error when the format cannot hold the task's
  // examples.
  std::string (*folder)(const Task& task) = nullptr;
  // Writes examples 0 .. train_share·count - 1 of train and 0 .. count - 1 of validation and of
  // test into the folder `root`, which exists and is empty.
  void (*write)(const Task& task, uint64_t seed, int64_t count, const std::string& root) = nullptr;
};

namespace data {

const ReleasedFormat& listops_tsv_format();
const ReleasedFormat& cifar10_format();
const ReleasedFormat& imdb_format();
const ReleasedFormat& aan_tsv_format();
const ReleasedFormat& pathfinder_png_format();  // parameters `side` and `contour`, or 128 and 14

}  // namespace data
}  // namespace attn
