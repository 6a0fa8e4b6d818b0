// The user's own copy of Long Range Arena's data (arXiv:2011.04006, 2.2): readers of the released
// formats. `folder` is what a task's `data` parameter holds; each reader also looks in the
// subfolder that the release has. All files are looked through at once, so that what is missing or
// damaged is an Error that names the file and the line or record; examples are read when asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tasks/api/task.h"

namespace attn::data {

// How a task makes an example of a picture: grey levels 0..255 by rows, and the label.
using FromGrey = std::function<Example(std::span<const uint8_t> grey, int32_t label)>;

// basic_{train,val,test}.tsv of listops-1000: trees in LRA's left-nested binary form. Tokens are
// the ids of the task listops, at most `length`. `solve` gets every whole tree with its label as
// read, and adds the rest; it throws when the label is wrong.
std::unique_ptr<Source> listops_tsv(const std::string& folder, int64_t length,
                                    std::function<void(Example&)> solve);

// data_batch_1..5.bin and test_batch.bin of cifar-10-batches-bin, 32 × 32, made grey. The first 90
// % of the batches' records train, the others validate.
std::unique_ptr<Source> cifar10(const std::string& folder, FromGrey example);

// aclImdb/{train,test}/{neg,pos}/NUMBER_RATING.txt: bytes + 1, at most `length`. In order of the
// number, negative first. LRA validates on the test split; here the training documents whose number
// ends in 9 validate, a tenth of either label.
std::unique_ptr<Source> imdb(const std::string& folder, int64_t length);

// new_aan_pairs.{train,eval,test}.tsv of tsv_data: label, id, id, text, text. Of each text the
// first 10,000 characters count, of these the first `length` bytes; tokens are bytes + 1. A pair
// that an earlier split has the other way round is left out as well.
std::unique_ptr<Source> aan_tsv(const std::string& folder, int64_t length);

// pathfinder{32,64,128,256}/{curv_baseline,curv_contour_length_9,curv_contour_length_14}, by `side`
// and `contour` (6, 9, 14): PNG files and the metadata that lists and labels them. In the order of
// the metadata's numbers, the first 80 % train, 10 % validate, 10 % test.
std::unique_ptr<Source> pathfinder_png(const std::string& folder, int64_t side, int64_t contour,
                                       FromGrey example);

}  // namespace attn::data
