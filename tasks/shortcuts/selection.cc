// Ranks features by their variance between classes over their total variance; see selection.h.
// Memory O(kWideFeatures · classes), and `width` numbers per example.
#include "tasks/shortcuts/selection.h"

#include <algorithm>

namespace attn {
namespace {

constexpr size_t kExamples = 4000;  // enough to rank features by; fitting sees all

class Ranking {
 public:
  explicit Ranking(size_t classes)
      : classes_(classes),
        sums_(kWideFeatures * classes, 0.0),
        squares_(kWideFeatures, 0.0),
        seen_(kWideFeatures, 0),
        counts_(classes, 0.0) {}

  void add(const FeatureRow& row, size_t label) {
    counts_[label]++;
    for (const auto& [index, value] : row) {
      const auto i = static_cast<size_t>(index);
      const auto x = static_cast<double>(value);
      sums_[i * classes_ + label] += x;
      squares_[i] += x * x;
      seen_[i]++;
    }
  }

  // narrow[wide index]: the place among those kept, or -1.
  std::vector<int32_t> best(size_t width) const {
    constexpr int32_t kFewest = 3;
    std::vector<std::pair<double, int32_t>> ranked;  // smallest first
    for (size_t i = 0; i < kWideFeatures; i++)
      if (seen_[i] >= kFewest) ranked.emplace_back(-share_between(i), static_cast<int32_t>(i));
    std::sort(ranked.begin(), ranked.end());
    ranked.resize(std::min(width, ranked.size()));
    std::vector<int32_t> narrow(kWideFeatures, -1);
    for (size_t i = 0; i < ranked.size(); i++)
      narrow[static_cast<size_t>(ranked[i].second)] = static_cast<int32_t>(i);
    return narrow;
  }

 private:
  double share_between(size_t i) const {
    double n = 0, total = 0, between = 0;
    for (size_t k = 0; k < classes_; k++) {
      const double sum = sums_[i * classes_ + k];
      n += counts_[k];
      total += sum;
      if (counts_[k] > 0) between += sum * sum / counts_[k];
    }
    const double variance = squares_[i] - total * total / n;
    return variance > 1e-9 * squares_[i] ? (between - total * total / n) / variance : 0;
  }

  size_t classes_;
  std::vector<double> sums_;  // [kWideFeatures, classes]
  std::vector<double> squares_;
  std::vector<int32_t> seen_;
  std::vector<double> counts_;  // of each class
};

Rows narrowed(const std::vector<Sample>& samples, const SampleFeatures& features,
              const std::vector<int32_t>& narrow) {
  Rows result;
  FeatureRow wide;
  for (const Sample& sample : samples) {
    wide.clear();
    features(sample, wide);
    FeatureRow& row = result.rows.emplace_back();
    for (const auto& [index, value] : wide)
      if (const int32_t kept = narrow[static_cast<size_t>(index)]; kept >= 0)
        row.emplace_back(kept, value);
    result.labels.push_back(sample.label());
  }
  return result;
}

}  // namespace

RidgeScore selected_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                          int64_t classes, size_t width, const SampleFeatures& features) {
  Ranking ranking(static_cast<size_t>(classes));
  FeatureRow wide;
  for (size_t i = 0; i < std::min(fitted_part(train.size()), kExamples); i++) {
    wide.clear();
    features(train[i], wide);
    ranking.add(wide, static_cast<size_t>(train[i].label()));
  }
  const std::vector<int32_t> narrow = ranking.best(width);
  const auto kept = static_cast<size_t>(*std::max_element(narrow.begin(), narrow.end()) + 1);
  return ridge_score(narrowed(train, features, narrow), narrowed(test, features, narrow), kept,
                     static_cast<size_t>(classes));
}

}  // namespace attn
