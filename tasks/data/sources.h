// Readers of the released formats of Long Range Arena's data (arXiv:2011.04006, 2.2). `folder` is
// the value of a task's `data` parameter; each reader also searches the subfolder of the release. A
// reader checks all files when it is made. A missing or damaged file is an Error that names the
// file and the line or record. Examples are read on request.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tasks/api/task.h"

namespace attn::data {

// Makes the example of a picture from its grey levels 0..255 by rows and its label.
using FromGrey = std::function<Example(std::span<const uint8_t> grey, int32_t label)>;

// basic_{train,val,test}.tsv of listops-1000: trees in LRA's left-nested binary form. Tokens are
// the ids of the task listops, at most `length`. `solve` gets every complete tree with its label
// and adds evidence and slices; it throws when the label is wrong.
std::unique_ptr<Source> listops_tsv(const std::string& folder, int64_t length,
                                    std::function<void(Example&)> solve);

// data_batch_1..5.bin and test_batch.bin of cifar-10-batches-bin: 32 × 32 pixels, converted to
// grey. The first 90 % of the records of the five batches are train, the others validation.
std::unique_ptr<Source> cifar10(const std::string& folder, FromGrey example);

// aclImdb/{train,test}/{neg,pos}/NUMBER_RATING.txt: tokens are bytes + 1, at most `length`. Sorted
// by number, negative before positive. The validation split is the training documents whose number
// ends in 9, a tenth of either label; LRA validates on the test split.
std::unique_ptr<Source> imdb(const std::string& folder, int64_t length);

// new_aan_pairs.{train,eval,test}.tsv of tsv_data: label, id, id, text, text. A text is cut to its
// first 10,000 characters and to `length` bytes; tokens are bytes + 1. A pair in the opposite order
// counts as a duplicate.
std::unique_ptr<Source> aan_tsv(const std::string& folder, int64_t length);

// pathfinder{32,64,128,256}/{curv_baseline,curv_contour_length_9,curv_contour_length_14}, by `side`
// and `contour` (6, 9, 14): PNG files and metadata with their names and labels. In the order of the
// numbers in the metadata, the first 80 % are train, the next 10 % validation, the last 10 % test.
std::unique_ptr<Source> pathfinder_png(const std::string& folder, int64_t side, int64_t contour,
                                       FromGrey example);

}  // namespace attn::data
