// Tables of most frequent labels, and ridge regression on real inputs; see fitted.h.
#include "tasks/shortcuts/fitted.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "tasks/shortcuts/most_frequent.h"
#include "tasks/shortcuts/normal.h"

namespace attn {
namespace {

using Counts = std::map<int32_t, int64_t>;

}  // namespace

double lookup_score(const std::vector<Example>& train, const std::vector<Example>& test,
                    const std::function<int64_t(const Example&, size_t)>& key) {
  return lookup_score(train, test, key, [](const Example& e, size_t i) { return e.target[i]; });
}

double lookup_score(const std::vector<Example>& train, const std::vector<Example>& test,
                    const std::function<int64_t(const Example&, size_t)>& key,
                    const std::function<int32_t(const Example&, size_t)>& answer) {
  const auto each = [&](const std::vector<Example>& examples, const auto& body) {
    for (const Example& e : examples)
      for (size_t i = 0; i < e.target.size(); i++)
        if (e.target[i] != kIgnoredLabel) body(key(e, i), answer(e, i));
  };
  Counts all;
  std::map<int64_t, Counts> by_key;
  each(train, [&](int64_t k, int32_t label) {
    all[label]++;
    by_key[k][label]++;
  });
  ATTN_CHECK(!all.empty(), "no labels to fit on");
  std::map<int64_t, int32_t> answers;
  for (const auto& [k, counts] : by_key) answers[k] = most_frequent(counts);
  const int32_t fallback = most_frequent(all);
  int64_t right = 0, scored = 0;
  each(test, [&](int64_t k, int32_t label) {
    const auto found = answers.find(k);
    right += label == (found == answers.end() ? fallback : found->second);
    scored++;
  });
  ATTN_CHECK(scored > 0, "no labels to score");
  return static_cast<double>(right) / static_cast<double>(scored);
}

double common_output_score(const std::vector<Example>& train, const std::vector<Example>& test) {
  ATTN_CHECK(!train.empty() && !test.empty(), "common_output_score needs examples");
  std::map<std::vector<int32_t>, int64_t> counts;
  for (const Example& e : train) counts[e.target]++;
  const std::vector<int32_t>& most = most_frequent(counts);
  const auto right =
      std::count_if(test.begin(), test.end(), [&](const Example& e) { return e.target == most; });
  return static_cast<double>(right) / static_cast<double>(test.size());
}

double mean_answer_error(const std::vector<Example>& train, const std::vector<Example>& test) {
  ATTN_CHECK(!train.empty() && !test.empty(), "mean_answer_error needs examples");
  double mean = 0, sum = 0;
  for (const Example& e : train) mean += static_cast<double>(e.wanted[0]);
  mean /= static_cast<double>(train.size());
  for (const Example& e : test) {
    const double error = static_cast<double>(e.wanted[0]) - mean;
    sum += error * error;
  }
  return sum / static_cast<double>(test.size());
}

std::vector<Example> reduced_pictures(const Task& task, const std::vector<Example>& examples,
                                      int64_t most) {
  const int64_t side = task.picture_width(), square = (side + most - 1) / most;
  const int64_t coarse = (side + square - 1) / square;
  std::vector<Example> result;
  for (const Example& e : examples) {
    const std::vector<uint8_t> grey = task.picture(e);
    Example small;
    small.target = e.target;
    small.values.assign(static_cast<size_t>(coarse * coarse), 0);
    for (int64_t p = 0; p < side * side; p++)
      small.values[static_cast<size_t>(p / side / square * coarse + p % side / square)] +=
          static_cast<float>(grey[static_cast<size_t>(p)]) / 255;
    result.push_back(std::move(small));
  }
  return result;
}

double linear_score(const std::vector<Example>& train, const std::vector<Example>& test,
                    int64_t classes) {
  ATTN_CHECK(!train.empty() && !test.empty(), "linear_score needs examples");
  const size_t size = train[0].values.size() + 1;  // the last entry is the bias
  const auto outputs = static_cast<size_t>(classes);
  NormalEquations normal(size, outputs);
  constexpr size_t kBlock = 32;  // 32 rows of 1025 doubles stay in a second-level cache
  for (size_t begin = 0; begin < train.size(); begin += kBlock) {
    std::vector<double> x;
    std::vector<size_t> labels;
    for (size_t e = begin; e < std::min(begin + kBlock, train.size()); e++) {
      ATTN_CHECK(train[e].values.size() + 1 == size, "linear_score needs examples of one length");
      x.insert(x.end(), train[e].values.begin(), train[e].values.end());
      x.push_back(1);
      labels.push_back(static_cast<size_t>(train[e].target[0]));
    }
    normal.add_block(x, labels);
  }
  // A twentieth of a pixel's energy: enough to stay calm with fewer examples than pixels.
  const std::vector<double> weights = normal.solve(0.05 * static_cast<double>(train.size()));
  int64_t right = 0;
  for (const Example& e : test) {
    std::vector<double> scores(weights.end() - static_cast<ptrdiff_t>(outputs), weights.end());
    for (size_t i = 0; i + 1 < size; i++)
      for (size_t k = 0; k < outputs; k++) scores[k] += e.values[i] * weights[i * outputs + k];
    right += std::max_element(scores.begin(), scores.end()) - scores.begin() == e.target[0];
  }
  return static_cast<double>(right) / static_cast<double>(test.size());
}

}  // namespace attn
