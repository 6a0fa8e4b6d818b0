// Sums in double in a fixed order, rounded once; see sums.h. The regressions cost at most 1024²
// operations per example.
#include "tasks/shortcuts/sums.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/base/check.h"

namespace attn {
namespace {

constexpr int64_t kNumbers = 1024;  // regressed on at once: 8 MB of normal equations
constexpr int64_t kMostProducts = 64;

void add(FeatureRow& row, int64_t index, double value) {
  if (value != 0) row.emplace_back(static_cast<int32_t>(index), static_cast<float>(value));
}

void add_token_counts(const Example& e, FeatureRow& row) {
  std::map<int64_t, double> counts;
  for (const int32_t token : e.tokens) counts[token % kNumbers]++;
  for (const auto& [token, count] : counts) add(row, token, count);
}

// Each number of `stretch` positions added up by channel; one-hot tokens would be too many numbers.
void add_stretches(const Example& e, int64_t channels, int64_t stretch, FeatureRow& row) {
  std::map<int64_t, double> sums;
  for (int64_t i = 0; i < std::ssize(e.values); i++)
    sums[i / channels / stretch * channels + i % channels] +=
        static_cast<double>(e.values[static_cast<size_t>(i)]);
  for (const auto& [index, sum] : sums) add(row, index, sum);
}

Rows rows_of(const std::vector<Example>& examples, const SampleFeatures& features) {
  Rows result;
  for (const Example& e : examples) {
    features({&e, 0}, result.rows.emplace_back());
    result.wanted.push_back(e.wanted[0]);
  }
  return result;
}

size_t width_of(const Rows& train, const Rows& test) {
  int32_t last = 0;
  for (const Rows* rows : {&train, &test})
    for (const FeatureRow& row : rows->rows)
      for (const auto& [index, value] : row) last = std::max(last, index);
  return static_cast<size_t>(last) + 1;
}

double error(const std::vector<Example>& train, const std::vector<Example>& test,
             const SampleFeatures& features) {
  const Rows fit = rows_of(train, features), score = rows_of(test, features);
  return ridge_error(fit, score, width_of(fit, score));
}

}  // namespace

SampleFeatures whole_sums(const TaskShape& shape) {
  const int64_t channels = shape.channels;
  return [channels](const Sample& sample, FeatureRow& row) {
    const Example& e = *sample.example;
    if (!e.tokens.empty()) return add_token_counts(e, row);
    const int64_t second = channels <= kMostProducts ? channels : 0;
    std::vector<double> sums(static_cast<size_t>(channels * (1 + second)), 0.0);
    for (size_t p = 0; p < e.values.size(); p += static_cast<size_t>(channels))
      for (int64_t a = 0; a < channels; a++) {
        const auto x = static_cast<double>(e.values[p + static_cast<size_t>(a)]);
        sums[static_cast<size_t>(a)] += x;
        for (int64_t b = a; b < second; b++)
          sums[static_cast<size_t>(channels + a * channels + b)] +=
              x * static_cast<double>(e.values[p + static_cast<size_t>(b)]);
      }
    for (int64_t i = 0; i < std::ssize(sums); i++) add(row, i, sums[static_cast<size_t>(i)]);
  };
}

double linear_error(const TaskShape& shape, const std::vector<Example>& train,
                    const std::vector<Example>& test) {
  const int64_t channels = shape.channels, most = std::max<int64_t>(1, kNumbers / channels);
  const int64_t stretch = (shape.length + most - 1) / most;
  return error(train, test, [channels, stretch](const Sample& sample, FeatureRow& row) {
    add_stretches(*sample.example, channels, stretch, row);
  });
}

double whole_sums_error(const TaskShape& shape, const std::vector<Example>& train,
                        const std::vector<Example>& test) {
  return error(train, test, whole_sums(shape));
}

void add_neighbours(const Sample& sample, FeatureRow& row) {
  const Example& e = *sample.example;
  const auto here = static_cast<int32_t>(sample.position);
  const int32_t own = e.tokens[sample.position];
  std::map<int64_t, double> counts;
  const auto bucket = [](int64_t kind, int64_t a, int64_t b) {
    const auto hash = static_cast<uint64_t>((kind << 60) ^ (a << 30) ^ b) * 0x9e3779b97f4a7c15ULL;
    return static_cast<int64_t>(hash >> 48);  // of kWideFeatures
  };
  counts[bucket(1, 0, own)]++;
  const std::pair<int32_t, int32_t> first{here, std::numeric_limits<int32_t>::min()};
  for (auto edge = std::lower_bound(e.edges.begin(), e.edges.end(), first);
       edge != e.edges.end() && edge->first == here; ++edge) {
    if (edge->second == here) continue;
    const int32_t token = e.tokens[static_cast<size_t>(edge->second)];
    counts[bucket(2, 0, token)]++;
    counts[bucket(3, own, token)]++;
  }
  for (const auto& [index, count] : counts) add(row, index, count);
}

}  // namespace attn
