// The score of a model on fixed batches with its standard error, for all labels, by distance and by
// slice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/model/encoder.h"

namespace attn {

// The labels whose distance (Example::distances) is in [from, to]. `from` and `to` are the least
// and the greatest distance of the bin.
struct DistanceBin {
  int64_t from = 0, to = 0, labels = 0;
  double accuracy = 0, standard_error = 0;  // the score, whatever the metric
};

// The labels whose slice `name` (Example::slices, label_slices) is in [from, to].
struct SliceBin {
  std::string name;
  double from = 0, to = 0;            // the least and the greatest value of the bin
  int64_t labels = 0, sequences = 0;  // scored, and those that they are of
  double score = 0, standard_error = 0;
};

struct Score {
  // The metric of the task: the share of correct labels, the share of output sequences that are
  // correct in every token, the mean squared error, or the mean bits of a label.
  double value = 0;
  double standard_error =
      0;  // over sequences, because the labels of one sequence are not independent
  // At most five bins in ascending order, with about the same number of labels. A distance is in
  // one bin only. Labels of unknown distance are in no bin.
  std::vector<DistanceBin> by_distance{};
  std::vector<SliceBin> by_slice{};  // see harness/train/slices.h
  double token_accuracy = 0;  // of output sequences: share of correct tokens, end tokens included
  // For each sequence the share of its labels that are correct, 0 where it has none; empty where
  // the answers are numbers or scored in bits.
  std::vector<double> each{};
};

enum class Scoring {
  accuracy,  // the share of labels that have the largest logit
  bits       // -log2 of the softmax at the label, in double
};
Score evaluate(const Encoder& model, const std::vector<Batch>& batches,
               Scoring scoring = Scoring::accuracy);

// The mean of one number per sequence, with its standard error.
Score mean_score(const std::vector<double>& each);

// The prediction of one label.
struct Answer {
  int64_t sequence = 0;   // index of the sequence
  int32_t distance = -1;  // Example::distances; -1: unknown
  double score = 0;       // 1: right, 0: wrong; the bits of the label; or a squared error
  int64_t place = 0;      // of the label, in its sequence
};
// The mean score of these answers, with its standard error over `sequences` sequences, of which
// those without any of them count as empty.
Score overall(const std::vector<Answer>& answers, int64_t sequences);
// The mean score of the answers for `sequences` sequences, for all labels and by distance.
Score score_of(std::vector<Answer> answers, int64_t sequences);

}  // namespace attn
