// Groups of answers by the values of their slices, and the score of each; see slices.h.
#include "harness/train/slices.h"

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace attn {

namespace {

using ByValue = std::map<double, std::vector<Answer>>;

// The sign, and the power of two below the value.
std::pair<int, int> octave(double value) {
  if (value == 0) return {0, 0};
  return {value < 0 ? -1 : 1, std::ilogb(value)};
}

void close(const std::string& name, std::pair<double, double> ends,
           const std::vector<Answer>& answers, int64_t sequences, std::vector<SliceBin>& bins) {
  std::set<int64_t> own;
  for (const Answer& answer : answers) own.insert(answer.sequence);
  const Score score = overall(answers, sequences);
  bins.push_back({.name = name,
                  .from = ends.first,
                  .to = ends.second,
                  .labels = std::ssize(answers),
                  .sequences = std::ssize(own),
                  .score = score.value,
                  .standard_error = score.standard_error});
}

void add_bins(const std::string& name, const ByValue& groups, int64_t sequences,
              std::vector<SliceBin>& bins) {
  const bool alone = groups.size() <= kSingleValues;
  std::vector<Answer> bin;
  double from = 0;
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    if (bin.empty()) from = group->first;
    bin.insert(bin.end(), group->second.begin(), group->second.end());
    const auto next = std::next(group);
    if (!alone && next != groups.end() && octave(next->first) == octave(from)) continue;
    close(name, {from, group->first}, bin, sequences, bins);
    bin.clear();
  }
}

// The values of all batches, one behind the other; `none` where a batch does not hold the slice.
template <class T>
std::vector<T> gathered(const std::vector<Batch>& batches, const std::string& name,
                        std::map<std::string, std::vector<T>> Batch::*slices, int64_t width,
                        T none) {
  std::vector<T> all;
  size_t end = 0;
  for (const Batch& batch : batches) {
    if (const auto own = (batch.*slices).find(name); own != (batch.*slices).end())
      all.insert(all.end(), own->second.begin(), own->second.end());
    end += static_cast<size_t>(batch.size * width);
    all.resize(end, none);
  }
  return all;
}

}  // namespace

std::vector<SliceBin> slice_bins(const std::vector<Answer>& answers,
                                 const std::vector<Batch>& batches) {
  std::vector<SliceBin> bins;
  int64_t sequences = 0;
  std::set<std::string> of_examples, of_labels;
  for (const Batch& batch : batches) {
    sequences += batch.size;
    for (const auto& [name, values] : batch.slices) of_examples.insert(name);
    for (const auto& [name, values] : batch.label_slices) of_labels.insert(name);
  }
  for (const std::string& name : of_examples) {
    const auto values = gathered(batches, name, &Batch::slices, 1, std::nan(""));
    ByValue groups;
    for (const Answer& answer : answers)
      if (const double value = values[static_cast<size_t>(answer.sequence)]; !std::isnan(value))
        groups[value].push_back(answer);
    add_bins(name, groups, sequences, bins);
  }
  for (const std::string& name : of_labels) {
    const int64_t width = batches.front().length;
    const auto values = gathered(batches, name, &Batch::label_slices, width, -1);
    ByValue groups;
    for (const Answer& answer : answers)
      if (const int32_t value = values[static_cast<size_t>(answer.sequence * width + answer.place)];
          value >= 0)
        groups[value].push_back(answer);
    add_bins(name, groups, sequences, bins);
  }
  return bins;
}

}  // namespace attn
