// Fixed windows through selected_score, and rules of copying for labels that are tokens; see
// windows.h.
#include "tasks/shortcuts/windows.h"

#include <algorithm>
#include <map>

#include "tasks/shortcuts/grams.h"

namespace attn {
namespace {

constexpr size_t kWidth = 256;        // features kept of a window
constexpr size_t kPlaces = 16;        // windows tried
constexpr size_t kChoosing = 2500;    // examples that choose the window
constexpr int64_t kMostClasses = 64;  // beyond it a linear classifier a class costs too much

// A part of a sequence, and where it begins within the window.
struct Part {
  const std::vector<int32_t>& tokens;
  size_t begin, end;
};

void add_hashed(std::vector<size_t>& seen, std::initializer_list<size_t> key) {
  uint64_t hash = 0;
  for (const size_t word : key) hash = (hash ^ (word + 1)) * 0x9e3779b97f4a7c15ULL;
  seen.push_back(static_cast<size_t>(hash >> 48));
}
static_assert(kWideFeatures == size_t{1} << 16);

size_t at(const Part& part, size_t i) { return static_cast<size_t>(part.tokens[part.begin + i]); }

void add_tokens(const Part& part, size_t document, std::vector<size_t>& seen) {
  const size_t size = part.end - part.begin;
  for (size_t i = 0; i < size; i++) {
    add_hashed(seen, {document, i, at(part, i)});
    if (i + 1 < size) add_hashed(seen, {document, i, at(part, i), at(part, i + 1)});
    if (i + 2 < size)
      add_hashed(seen, {document, i, at(part, i), at(part, i + 1), at(part, i + 2)});
  }
}

void add_once(std::vector<size_t>& seen, Row& row) {
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const size_t index : seen) row.emplace_back(static_cast<int32_t>(index), 1.0f);
}

void add_values(const std::vector<float>& values, size_t begin, size_t end, Row& row) {
  constexpr auto kSize = static_cast<size_t>(kWindow);
  for (size_t i = begin; i < end; i++) {
    const size_t a = i - begin;
    row.emplace_back(static_cast<int32_t>(a), values[i]);
    for (size_t j = i; j < end; j++)
      row.emplace_back(static_cast<int32_t>(kSize + a * kSize + (j - begin)),
                       values[i] * values[j]);
  }
}

std::pair<size_t, size_t> window(size_t size, size_t place) {
  constexpr auto kSize = static_cast<size_t>(kWindow);
  if (size <= kSize) return {0, size};
  const size_t begin = (size - kSize) * place / (kPlaces - 1);
  return {begin, begin + kSize};
}

Features at_place(size_t place) {
  return [place](const Sample& sample, Row& row) {
    const Example& e = *sample.example;
    const auto [begin, end] = window(e.tokens.size() + e.values.size(), place);
    if (!e.values.empty()) return add_values(e.values, begin, end, row);
    std::vector<size_t> seen;
    const Part one{e.tokens, begin, end};
    add_tokens(one, 0, seen);
    if (!e.second.empty()) {
      const auto [second_begin, second_end] = window(e.second.size(), place);
      const Part two{e.second, second_begin, second_end};
      add_tokens(two, 1, seen);
      for (size_t i = 0; i < std::min(end - begin, second_end - second_begin); i++) {
        add_hashed(seen, {2, i, at(one, i), at(two, i)});
        add_hashed(seen, {3, i, at(one, i) == at(two, i)});
      }
    }
    add_once(seen, row);
  };
}

// The tokens up to and with the label's position.
Part before(const Sample& sample) {
  const size_t end = sample.position + 1;
  return {sample.example->tokens, end - std::min(end, static_cast<size_t>(kWindow)), end};
}

void add_before(const Sample& sample, Row& row) {
  const Example& e = *sample.example;
  const size_t end = sample.position + 1;
  const size_t begin = end - std::min(end, static_cast<size_t>(kWindow));
  if (!e.values.empty()) return add_values(e.values, begin, end, row);
  const Part part = before(sample);
  std::vector<size_t> seen;
  for (size_t i = part.end; i-- > part.begin;) {  // by the distance from the label
    const size_t back = part.end - 1 - i;
    const auto token = static_cast<size_t>(e.tokens[i]);
    add_hashed(seen, {back, token});
    if (i > part.begin) add_hashed(seen, {back, token, static_cast<size_t>(e.tokens[i - 1])});
  }
  add_once(seen, row);
}

// -1 where the sequence has no such token.
int32_t token_before(const Sample& sample, size_t back) {
  return sample.position < back ? -1 : sample.example->tokens[sample.position - back];
}

int32_t recalled(const Sample& sample) {
  const Part part = before(sample);
  const int32_t asked = part.tokens[part.end - 1];
  for (size_t i = part.end - 1; i-- > part.begin;)
    if (part.tokens[i] == asked) return part.tokens[i + 1];
  return -1;
}

using Answer = std::function<int32_t(const Sample&)>;

double right(const std::vector<Sample>& samples, const Answer& answer) {
  int64_t hits = 0;
  for (const Sample& sample : samples) hits += answer(sample) == sample.label();
  return static_cast<double>(hits) / static_cast<double>(samples.size());
}

// What the token `back` places before mostly stood for in training.
Answer looked_up(const std::vector<Sample>& train, size_t back) {
  std::map<int32_t, std::map<int32_t, int64_t>> counts;
  for (const Sample& sample : train) counts[token_before(sample, back)][sample.label()]++;
  std::map<int32_t, int32_t> table;
  for (const auto& [token, labels] : counts)
    table[token] = std::max_element(labels.begin(), labels.end(), [](const auto& a, const auto& b) {
                     return a.second < b.second;
                   })->first;
  return [table, back](const Sample& sample) {
    const auto found = table.find(token_before(sample, back));
    return found == table.end() ? -1 : found->second;
  };
}

}  // namespace

double best_window_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                         int64_t classes) {
  const std::vector<Sample> few(
      train.begin(), train.begin() + static_cast<ptrdiff_t>(std::min(train.size(), kChoosing)));
  size_t best = 0;
  double best_score = -1;
  for (size_t place = 0; place < kPlaces; place++) {
    const double score = selected_score(few, {}, classes, kWidth, at_place(place)).held_out;
    if (!(score > best_score)) continue;
    best_score = score;
    best = place;
  }
  return selected_score(train, test, classes, kWidth, at_place(best)).test;
}

double window_before_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                           int64_t classes) {
  const size_t fitted = fitted_part(train.size());
  const std::vector<Sample> first(train.begin(), train.begin() + static_cast<ptrdiff_t>(fitted)),
      held_out(train.begin() + static_cast<ptrdiff_t>(fitted), train.end());
  double chosen = -1, result = 0;
  const auto offer = [&](double score, const std::function<double()>& on_test) {
    if (!(score > chosen)) return;
    chosen = score;
    result = on_test();
  };
  if (classes <= kMostClasses) {
    const RidgeScore linear = selected_score(train, test, classes, kWidth, add_before);
    offer(linear.held_out, [&] { return linear.test; });
  }
  if (train[0].example->tokens.empty()) return result;
  const std::vector<Sample>& scored = held_out.empty() ? train : held_out;
  for (size_t back = 0; back < static_cast<size_t>(kWindow); back++) {
    offer(right(scored, looked_up(first, back)),
          [&] { return right(test, looked_up(train, back)); });
    const Answer copied = [back](const Sample& s) { return token_before(s, back); };
    const Answer recall = [back](const Sample& s) {
      const int32_t found = recalled(s);
      return found >= 0 ? found : token_before(s, back);
    };
    for (const Answer& answer : {copied, recall})
      offer(right(scored, answer), [&] { return right(test, answer); });
  }
  return result;
}

}  // namespace attn
