// Linear classifiers on fixed windows, and copying rules for labels that are tokens; see windows.h.
#include "tasks/shortcuts/windows.h"

#include <algorithm>
#include <map>

#include "tasks/shortcuts/grams.h"
#include "tasks/shortcuts/most_frequent.h"

namespace attn {
namespace {

constexpr size_t kWindowWidth = 256;  // features kept of a window
constexpr size_t kPlaces = 16;        // windows tried
constexpr size_t kChoosing = 2500;    // examples that choose the window

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

void add_once(std::vector<size_t>& seen, FeatureRow& row) {
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const size_t index : seen) row.emplace_back(static_cast<int32_t>(index), 1.0f);
}

// Numbers of positions [begin, end), the first of them `skipped` places into a window of `places`.
void add_values(const Example& e, int64_t channels, size_t begin, size_t end, size_t skipped,
                size_t places, FeatureRow& row) {
  const auto width = static_cast<size_t>(channels);
  const size_t size = places * width;
  const bool products = size * (size + 1) <= kWideFeatures;
  for (size_t i = begin * width; i < end * width; i++) {
    const size_t a = i - (begin - skipped) * width;
    row.emplace_back(static_cast<int32_t>(a), e.values[i]);
    for (size_t j = i; products && j < end * width; j++)
      row.emplace_back(static_cast<int32_t>(size + a * size + (j - (begin - skipped) * width)),
                       e.values[i] * e.values[j]);
  }
}

std::pair<size_t, size_t> window(size_t size, size_t place) {
  constexpr auto kSize = static_cast<size_t>(kWindow);
  if (size <= kSize) return {0, size};
  const size_t begin = (size - kSize) * place / (kPlaces - 1);
  return {begin, begin + kSize};
}

SampleFeatures at_place(size_t place, const TaskShape& shape) {
  return [place, shape](const Sample& sample, FeatureRow& row) {
    const Example& e = *sample.example;
    const auto [begin, end] = window(static_cast<size_t>(positions(e, shape)), place);
    if (!e.values.empty())
      return add_values(e, shape.channels, begin, end, 0, static_cast<size_t>(kWindow), row);
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

// The window of a label at a position: so many places before it and after it.
struct Around {
  int64_t before, after;
  std::pair<size_t, size_t> of(size_t position, size_t size) const {
    const auto here = static_cast<int64_t>(position);
    return {static_cast<size_t>(std::max<int64_t>(0, here - before)),
            static_cast<size_t>(std::min(static_cast<int64_t>(size), here + after + 1))};
  }
};
Around around(const TaskShape& shape) {
  return shape.causal ? Around{kWindow - 1, 0} : Around{kWindow / 2, kWindow / 2 - 1};
}

SampleFeatures values_around(const Around& window, const TaskShape& shape) {
  return [window, shape](const Sample& sample, FeatureRow& row) {
    const Example& e = *sample.example;
    const auto [begin, end] = window.of(sample.position, static_cast<size_t>(positions(e, shape)));
    const size_t skipped = begin + static_cast<size_t>(window.before) - sample.position;
    add_values(e, shape.channels, begin, end, skipped,
               static_cast<size_t>(window.before + window.after + 1), row);
  };
}

SampleFeatures tokens_around(const Around& window) {
  return [window](const Sample& sample, FeatureRow& row) {
    const std::vector<int32_t>& tokens = sample.example->tokens;
    const auto [begin, end] = window.of(sample.position, tokens.size());
    std::vector<size_t> seen;
    for (size_t i = begin; i < end; i++) {
      const size_t back =
          sample.position - i;  // wraps around after the position: a key all the same
      const auto token = static_cast<size_t>(tokens[i]);
      add_hashed(seen, {back, token});
      if (i > begin) add_hashed(seen, {back, token, static_cast<size_t>(tokens[i - 1])});
    }
    add_once(seen, row);
  };
}

// -1 where the sequence has no such token. `back` places before; after, where negative.
int32_t token_before(const Sample& sample, int64_t back) {
  const int64_t place = static_cast<int64_t>(sample.position) - back;
  const std::vector<int32_t>& tokens = sample.example->tokens;
  return place < 0 || place >= std::ssize(tokens) ? -1 : tokens[static_cast<size_t>(place)];
}

// What followed the latest token equal to the one there; -1: none in the window.
int32_t recalled(const Sample& sample, int64_t before) {
  const std::vector<int32_t>& tokens = sample.example->tokens;
  const int64_t here = static_cast<int64_t>(sample.position);
  for (int64_t i = here - 1; i >= std::max<int64_t>(0, here - before); i--)
    if (tokens[static_cast<size_t>(i)] == tokens[sample.position])
      return tokens[static_cast<size_t>(i + 1)];
  return -1;
}

using Answer = std::function<int32_t(const Sample&)>;

double right(const std::vector<Sample>& samples, const Answer& answer) {
  int64_t hits = 0;
  for (const Sample& sample : samples) hits += answer(sample) == sample.label();
  return static_cast<double>(hits) / static_cast<double>(samples.size());
}

// What the token `back` places before mostly stood for in training.
Answer looked_up(const std::vector<Sample>& train, int64_t back) {
  std::map<int32_t, std::map<int32_t, int64_t>> counts;
  for (const Sample& sample : train) counts[token_before(sample, back)][sample.label()]++;
  std::map<int32_t, int32_t> table;
  for (const auto& [token, labels] : counts) table[token] = most_frequent(labels);
  return [table, back](const Sample& sample) {
    const auto found = table.find(token_before(sample, back));
    return found == table.end() ? -1 : found->second;
  };
}

}  // namespace

double best_window_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                         const TaskShape& shape) {
  const std::vector<Sample> few(
      train.begin(), train.begin() + static_cast<ptrdiff_t>(std::min(train.size(), kChoosing)));
  size_t best = 0;
  double best_score = -1;
  for (size_t place = 0; place < kPlaces; place++) {
    const double score =
        selected_score(few, {}, shape.classes, kWindowWidth, at_place(place, shape)).held_out;
    if (!(score > best_score)) continue;
    best_score = score;
    best = place;
  }
  return selected_score(train, test, shape.classes, kWindowWidth, at_place(best, shape)).test;
}

double window_around_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                           const TaskShape& shape) {
  const Around window = around(shape);
  const size_t fitted = fitted_part(train.size());
  const std::vector<Sample> first(train.begin(), train.begin() + static_cast<ptrdiff_t>(fitted)),
      held_out(train.begin() + static_cast<ptrdiff_t>(fitted), train.end());
  double chosen = -1, result = 0;
  const auto offer = [&](double score, const std::function<double()>& on_test) {
    if (!(score > chosen)) return;
    chosen = score;
    result = on_test();
  };
  const bool values = shape.vocab == 0;
  if (shape.classes <= kMostClasses) {
    const RidgeScore linear =
        selected_score(train, test, shape.classes, kWindowWidth,
                       values ? values_around(window, shape) : tokens_around(window));
    offer(linear.held_out, [&] { return linear.test; });
  }
  if (values) return result;
  const std::vector<Sample>& scored = held_out.empty() ? train : held_out;
  for (int64_t back = -window.after; back <= window.before; back++) {
    offer(right(scored, looked_up(first, back)),
          [&] { return right(test, looked_up(train, back)); });
    const Answer copied = [back](const Sample& s) { return token_before(s, back); };
    const Answer recall = [back, window](const Sample& s) {
      const int32_t found = recalled(s, window.before);
      return found >= 0 ? found : token_before(s, back);
    };
    for (const Answer& answer : {copied, recall})
      offer(right(scored, answer), [&] { return right(test, answer); });
  }
  return result;
}

double values_there_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                          const TaskShape& shape) {
  return selected_score(train, test, shape.classes, kWindowWidth, values_around({0, 0}, shape))
      .test;
}

}  // namespace attn
