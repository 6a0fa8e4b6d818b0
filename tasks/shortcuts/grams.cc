// Hashed pattern counts, one document at a time; see grams.h.
#include "tasks/shortcuts/grams.h"

#include <algorithm>
#include <cmath>

namespace attn {
namespace {

constexpr int kBits = 15;
constexpr size_t kBuckets = size_t{1} << kBits;  // two features each fill kWideFeatures
static_assert(2 * kBuckets == kWideFeatures);

uint64_t extended(uint64_t hash, int32_t symbol) {
  return (hash ^ static_cast<uint64_t>(symbol + 1)) * 0x9e3779b97f4a7c15ULL;
}
size_t bucket(uint64_t hash) { return static_cast<size_t>(hash >> (64 - kBits)); }

// The numbers of the patterns of one document, by bucket.
class Tally {
 public:
  Tally() : counts_(kBuckets, 0) {}
  void add(size_t b) {
    if (counts_[b]++ == 0) touched_.push_back(b);
  }
  int32_t operator[](size_t b) const { return counts_[b]; }
  const std::vector<size_t>& touched() const { return touched_; }

 private:
  std::vector<int32_t> counts_;
  std::vector<size_t> touched_;
};

void count_runs(const std::vector<int32_t>& document, size_t shortest, size_t longest,
                Tally& tally) {
  for (size_t i = 0; i < document.size(); i++) {
    uint64_t hash = 0;
    for (size_t n = 1; n <= longest && i + n <= document.size(); n++) {
      hash = extended(hash, document[i + n - 1]);
      if (n >= shortest) tally.add(bucket(hash));
    }
  }
}

void count(const std::vector<int32_t>& document, Patterns patterns, Tally& tally) {
  if (patterns != Patterns::local) {
    count_runs(document, 1, patterns == Patterns::tokens ? 1 : 4, tally);
    return;
  }
  count_runs(document, 1, 1, tally);
  for (size_t i = 0; i < document.size(); i++)
    for (size_t apart = 1; apart < kWindow && i + apart < document.size(); apart++)
      tally.add(bucket(extended(extended(apart << 40, document[i]), document[i + apart])));
}

void add_gram(FeatureRow& row, size_t index, double value) {
  if (value != 0) row.emplace_back(static_cast<int32_t>(index), static_cast<float>(value));
}

// Shared over all patterns (counted), and the cosine of the counts, squared.
std::pair<double, double> likeness(const Tally& a, const Tally& b) {
  double both = 0, either = 0, product = 0, aa = 0, bb = 0;
  for (const size_t i : a.touched()) {
    const double x = a[i], y = b[i];
    both += std::min(x, y);
    either += std::max(x, y);
    product += x * y;
    aa += x * x;
  }
  for (const size_t i : b.touched()) {
    const double y = b[i];
    if (a[i] == 0) either += y;
    bb += y * y;
  }
  if (aa == 0 || bb == 0) return {0, 0};
  return {both / either, product / aa * (product / bb)};
}

}  // namespace

Symbols::Symbols(const std::vector<Sample>& train, int levels) : levels_(levels) {
  bool first = true;
  for (const Sample& sample : train)
    for (const float value : sample.example->values) {
      low_ = first ? value : std::min(low_, value);
      high_ = first ? value : std::max(high_, value);
      first = false;
    }
}

int32_t Symbols::of(float value) const {
  const double range = static_cast<double>(high_) - static_cast<double>(low_);
  if (!(range > 0)) return 0;
  const double place = (static_cast<double>(value) - static_cast<double>(low_)) / range;
  return static_cast<int32_t>(std::clamp(place * levels_, 0.0, levels_ - 1.0));
}

std::vector<int32_t> Symbols::of(const Example& example) const {
  std::vector<int32_t> result = example.tokens;
  for (const float value : example.values) result.push_back(of(value));
  return result;
}

SampleFeatures pattern_counts(const Symbols& symbols, Patterns patterns) {
  return [symbols, patterns](const Sample& sample, FeatureRow& row) {
    Tally one;
    count(symbols.of(*sample.example), patterns, one);
    if (sample.example->second.empty()) {
      for (const size_t b : one.touched()) {
        add_gram(row, 2 * b, one[b]);
        add_gram(row, 2 * b + 1, 1);
      }
      return;
    }
    Tally other;
    count(sample.example->second, patterns, other);
    for (const size_t b : one.touched()) {
      add_gram(row, 2 * b, static_cast<double>(one[b]) * other[b]);
      add_gram(row, 2 * b + 1, std::abs(one[b] - other[b]));
    }
    for (const size_t b : other.touched())
      if (one[b] == 0) add_gram(row, 2 * b + 1, other[b]);
  };
}

SampleFeatures overlap(const Symbols& symbols) {
  return [symbols](const Sample& sample, FeatureRow& row) {
    const std::vector<int32_t> first = symbols.of(*sample.example);
    const std::vector<int32_t>& second = sample.example->second;
    size_t index = 0;
    for (const size_t n : {1, 2, 3, 4, 8, 16}) {
      Tally one, other;
      count_runs(first, n, n, one);
      count_runs(second, n, n, other);
      const auto [shared, cosine] = likeness(one, other);
      add_gram(row, index++, shared);
      add_gram(row, index++, cosine);
    }
    const double a = static_cast<double>(first.size()), b = static_cast<double>(second.size());
    add_gram(row, index++, std::min(a, b) / std::max(a, b));
    add_gram(row, index++, first.front() == second.front());
    add_gram(row, index++, first.back() == second.back());
  };
}

}  // namespace attn
