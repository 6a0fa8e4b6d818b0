// Interpolated n-grams on one table of hashed counts; see ngrams.h.
#include "tasks/shortcuts/ngrams.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "core/base/log2.h"

namespace attn {
namespace {

constexpr int64_t kMostFitted = int64_t{1} << 22;  // labels
constexpr size_t kFirstSlots = 1024;
// What a hash counts of a context, beside how often each label follows it.
enum Kind : uint64_t { kGramSeen, kGramDifferent, kGramLabel, kFirstToken };

uint64_t scrambled(uint64_t x) {  // the last steps of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t followed(uint64_t hash, uint64_t word) {
  return scrambled(hash + (word + 1) * 0x9e3779b97f4a7c15ULL);
}

// Calls body(n, hash of the last n tokens) from n = 0 to the longest context that there is.
template <class Body>
void each_context(std::span<const int32_t> before, const Body& body) {
  uint64_t hash = 0x6a09e667f3bcc909ULL;
  for (size_t n = 0; n < std::min(kGramOrders, before.size() + 1); n++) {
    if (n > 0)
      hash = followed(hash, static_cast<uint64_t>(before[before.size() - n]) + kFirstToken);
    body(n, hash);
  }
}

uint64_t with_label(uint64_t hash, int32_t label) {
  return followed(followed(hash, kGramLabel), static_cast<uint64_t>(label));
}

// Of all scored labels of examples: body(example's number, tokens up to the label's, label).
template <class Body>
void each_label(const std::vector<Example>& examples, int64_t most, const Body& body) {
  int64_t seen = 0;
  for (size_t number = 0; number < examples.size(); number++) {
    const Example& e = examples[number];
    const std::span<const int32_t> tokens = e.tokens;
    for (size_t i = 0; i < tokens.size() && seen < most; i++)
      if (e.target[i] != kIgnoredLabel) {
        body(number, tokens.first(i + 1), e.target[i]);
        seen++;
      }
  }
}

struct Bits {
  std::array<double, kGramOrders> sums{};
  int64_t labels = 0;

  void add(const std::array<double, kGramOrders>& probabilities) {
    for (size_t n = 0; n < kGramOrders; n++) sums[n] -= same_log2(probabilities[n]);
    labels++;
  }
  double mean(size_t n) const { return sums[n] / static_cast<double>(labels); }
};

}  // namespace

void NGrams::Counts::clear() {
  const size_t size = std::max(counts_.size(), kFirstSlots);
  hashes_.resize(size);
  counts_.assign(size, 0);
  used_ = 0;
}

size_t NGrams::Counts::place_of(uint64_t hash) const {
  const size_t mask = counts_.size() - 1;
  size_t place = hash & mask;
  while (counts_[place] != 0 && hashes_[place] != hash) place = (place + 1) & mask;
  return place;
}

int32_t NGrams::Counts::add(uint64_t hash) {
  const size_t place = place_of(hash);
  hashes_[place] = hash;
  const int32_t before = counts_[place]++;
  if (before == 0 && 3 * ++used_ > 2 * counts_.size()) grow();
  return before;
}

void NGrams::Counts::grow() {
  std::vector<uint64_t> hashes(2 * hashes_.size());
  std::vector<int32_t> counts(hashes.size(), 0);
  hashes.swap(hashes_);
  counts.swap(counts_);
  for (size_t i = 0; i < counts.size(); i++) {
    if (counts[i] == 0) continue;
    const size_t place = place_of(hashes[i]);
    hashes_[place] = hashes[i];
    counts_[place] = counts[i];
  }
}

void NGrams::clear() { counts_.clear(); }

void NGrams::add(std::span<const int32_t> before, int32_t label) {
  each_context(before, [&](size_t, uint64_t context) {
    counts_.add(followed(context, kGramSeen));
    if (counts_.add(with_label(context, label)) == 0)
      counts_.add(followed(context, kGramDifferent));
  });
}

std::array<double, kGramOrders> NGrams::probabilities(std::span<const int32_t> before,
                                                      int32_t label) const {
  std::array<double, kGramOrders> found{};
  double shorter = 1 / classes_;
  each_context(before, [&](size_t n, uint64_t context) {
    const double seen = counts_.of(followed(context, kGramSeen)),
                 different = counts_.of(followed(context, kGramDifferent)),
                 labels = counts_.of(with_label(context, label));
    if (seen > 0) shorter = (labels + different * shorter) / (seen + different);
    for (size_t longer = n; longer < kGramOrders; longer++) found[longer] = shorter;
  });
  return found;
}

std::vector<Shortcut> gram_shortcuts(const TaskShape& shape, const std::vector<Example>& train,
                                     const std::vector<Example>& test) {
  NGrams trained(shape.classes), own(shape.classes);
  each_label(train, kMostFitted, [&](size_t, std::span<const int32_t> before, int32_t label) {
    trained.add(before, label);
  });
  Bits by_training, in_context;
  double mixed = 0;
  size_t current = 0;  // the example that `own` counts
  each_label(test, std::numeric_limits<int64_t>::max(),
             [&](size_t number, std::span<const int32_t> before, int32_t label) {
               const auto learned = trained.probabilities(before, label);
               by_training.add(learned);
               if (number != current) own.clear();
               current = number;
               const auto seen = own.probabilities(before, label);
               in_context.add(seen);
               mixed -= same_log2(0.9 * learned[kMixedOrder - 1] + 0.1 * seen[kGramOrders - 1]);
               own.add(before, label);
             });
  ATTN_CHECK(by_training.labels > 0, "no labels to score");
  std::vector<Shortcut> found = {{"label frequencies", by_training.mean(0)}};
  for (size_t n = 1; n < kGramOrders; n++)
    found.push_back({fmt::format("n-gram of {}", n + 1), by_training.mean(n)});
  for (size_t n = 0; n < kGramOrders; n++)
    found.push_back({fmt::format("n-gram of {} in context", n + 1), in_context.mean(n)});
  found.push_back({fmt::format("n-gram of {}, 9:1 with {} in context", kMixedOrder, kGramOrders),
                   mixed / static_cast<double>(by_training.labels)});
  return found;
}

}  // namespace attn
