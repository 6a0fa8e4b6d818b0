// The public members of Task and TaskInfo; see task.h. Every example is checked against the shape
// of its task before it is returned. O(length).
#include "tasks/api/task.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/check.h"
#include "core/base/log2.h"
#include "core/base/nearest.h"

namespace attn {
namespace {

void check_example_inputs(const Example& e, const TaskShape& shape) {
  ATTN_CHECK(e.tokens.empty() != e.values.empty(),
             "example has {} tokens and {} values; exactly one must be filled", e.tokens.size(),
             e.values.size());
  ATTN_CHECK(e.second.empty() != shape.pairs, "the second document has {} tokens in a task of {}",
             e.second.size(), shape.pairs ? "pairs" : "single sequences");
  ATTN_CHECK(std::ssize(e.values) % shape.channels == 0, "{} values for positions of {} channels",
             e.values.size(), shape.channels);
  const int64_t size = std::max(positions(e, shape), static_cast<int64_t>(e.second.size()));
  ATTN_CHECK(size <= shape.length, "example of length {} in a task of length {}", size,
             shape.length);
  for (const std::vector<int32_t>* document : {&e.tokens, &e.second})
    for (const int32_t token : *document)
      ATTN_CHECK(token > kPadToken && token < shape.vocab, "token {} outside [1, {})", token,
                 shape.vocab);
  for (const float value : e.values)
    ATTN_CHECK(std::isfinite(value), "input value {} is not finite", value);
}

void check_labels(const Example& e, const TaskShape& shape) {
  const int64_t size = shape.per_token ? shape.length : 1;
  ATTN_CHECK(static_cast<int64_t>(e.target.size()) == size, "example has {} labels, {} expected",
             e.target.size(), size);
  bool scored = false;
  for (const int32_t label : e.target) {
    const bool ignored = shape.per_token && label == kIgnoredLabel;
    ATTN_CHECK(ignored || (label >= 0 && label < shape.classes), "label {} outside [0, {})", label,
               shape.classes);
    scored |= !ignored;
  }
  ATTN_CHECK(scored, "example without a scored label");
}

void check_output(const Example& e, const TaskShape& shape) {
  ATTN_CHECK(!e.target.empty() && std::ssize(e.target) <= shape.outputs,
             "an output of {} tokens, expected 1 to {}", e.target.size(), shape.outputs);
  for (const int32_t token : e.target)
    ATTN_CHECK(token >= 0 && token < shape.classes, "output token {} outside [0, {})", token,
               shape.classes);
}

void check_target(const Example& e, const TaskShape& shape) {
  ATTN_CHECK(e.wanted.size() == (shape.real ? 1 : 0), "example has {} numbers to predict",
             e.wanted.size());
  if (shape.outputs > 0) return check_output(e, shape);
  if (!shape.real) return check_labels(e, shape);
  ATTN_CHECK(e.target.empty(), "example has {} labels and a number to predict", e.target.size());
  ATTN_CHECK(std::isfinite(e.wanted[0]), "the number to predict is {}", e.wanted[0]);
}

void check_edges(const Example& e, const TaskShape& shape) {
  ATTN_CHECK(e.edges.empty() || shape.edges, "{} edges in a task without", e.edges.size());
  const auto size = static_cast<int32_t>(positions(e, shape));
  for (size_t i = 0; i < e.edges.size(); i++) {
    const auto [from, to] = e.edges[i];
    const bool inside = from >= 0 && from < size && to >= 0 && to < size;
    ATTN_CHECK(inside && (i == 0 || e.edges[i - 1] < e.edges[i]),
               "edge ({}, {}) in a sequence of {}: they must be inside and sorted", from, to, size);
  }
}

void check_evidence(const Example& e, const TaskShape& shape) {
  const int64_t size = positions(e, shape);
  const auto second = static_cast<int64_t>(e.second.size());
  int64_t previous = -1;
  for (const int32_t position : e.evidence) {
    const bool inside =
        position < size || (position >= shape.length && position < shape.length + second);
    ATTN_CHECK(position > previous && inside, "evidence position {} after {} in a sequence of {}",
               position, previous, size);
    previous = position;
  }
}

void check_slices(const Example& e, const TaskShape& shape) {
  for (const auto& [name, value] : e.slices)
    ATTN_CHECK(std::isfinite(value), "slice '{}' is {}", name, value);
  for (const auto& [name, values] : e.label_slices) {
    ATTN_CHECK(!e.slices.contains(name), "slice '{}' is of the example and of its labels", name);
    const size_t expected = shape.per_token ? e.target.size() : 0;
    ATTN_CHECK(values.size() == expected, "slice '{}' has {} labels, expected {}", name,
               values.size(), expected);
    for (size_t i = 0; i < values.size(); i++)
      ATTN_CHECK(e.target[i] == kIgnoredLabel ? values[i] == -1 : values[i] >= 0,
                 "slice '{}' is {} at position {}, which has {} label", name, values[i], i,
                 e.target[i] == kIgnoredLabel ? "no" : "a");
  }
}

}  // namespace

double guessing(const TaskShape& shape) {
  const auto classes = static_cast<double>(shape.classes);
  return shape.bits ? same_log2(classes) : 1 / classes;
}

int64_t positions(const Example& e, const TaskShape& shape) {
  return std::ssize(e.tokens) + std::ssize(e.values) / shape.channels;
}

std::vector<int32_t> first_positions(size_t count) {
  std::vector<int32_t> positions(count);
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

std::string_view to_string(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::validation:
      return "validation";
    case Split::test:
      return "test";
  }
  throw_error("unknown split");
}

uint64_t input_checksum(const Example& e) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&](uint32_t word) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash ^= (word >> shift) & 0xff;
      hash *= 0x100000001b3ULL;
    }
  };
  for (const int32_t token : e.tokens) add(static_cast<uint32_t>(token));
  add(0);  // no token: ends a document
  for (const int32_t token : e.second) add(static_cast<uint32_t>(token));
  for (const float value : e.values) add(std::bit_cast<uint32_t>(value));
  for (const auto& [from, to] : e.edges) {
    add(static_cast<uint32_t>(from));
    add(static_cast<uint32_t>(to));
  }
  hash ^= hash >> 33;  // FNV's low bits depend on low bits alone
  hash *= 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 33);
}

namespace {

Split split_of(const Example& e) {
  const uint64_t quarter = input_checksum(e) & 3;
  return quarter < 2 ? Split::train : quarter == 2 ? Split::validation : Split::test;
}

Rng stream(uint64_t seed, Split split, int64_t index) {
  ATTN_CHECK(index >= 0, "example index {} is negative", index);
  return rng(seed, fmt::format("example/{}", to_string(split)), static_cast<uint64_t>(index));
}

// The span of the evidence within one document; see Example::distances.
std::vector<int32_t> spans(const Example& e, const TaskShape& shape) {
  std::vector<int32_t> result;
  if (e.evidence.empty()) return result;
  if (shape.per_token) {
    for (size_t i = 0; i < e.target.size(); i++) {
      const int32_t here = static_cast<int32_t>(i), first = e.evidence.front();
      result.push_back(e.target[i] == kIgnoredLabel
                           ? -1
                           : std::max(here, e.evidence.back()) - std::min(here, first));
    }
    return result;
  }
  const auto border = std::lower_bound(e.evidence.begin(), e.evidence.end(), shape.length);
  int32_t longest = 0;
  if (border != e.evidence.begin()) longest = *(border - 1) - e.evidence.front();
  if (border != e.evidence.end()) longest = std::max(longest, e.evidence.back() - *border);
  return {longest};
}

}  // namespace

Example Task::finished(Example e) const {
  const TaskShape s = shape();
  check_example_inputs(e, s);
  check_target(e, s);
  check_edges(e, s);
  check_evidence(e, s);
  check_slices(e, s);
  if (e.distances.empty()) e.distances = spans(e, s);
  const size_t expected = s.per_token ? e.target.size() : 1;
  ATTN_CHECK(e.distances.empty() || e.distances.size() == expected,
             "example has {} distances, expected {}", e.distances.size(), expected);
  return e;
}

Example Task::example(uint64_t seed, Split split, int64_t index) const {
  Rng random = stream(seed, split, index);
  if (const Source* const files = source()) {
    ATTN_CHECK(index < files->count(split), "the {} split has {} examples, asked for number {}",
               to_string(split), files->count(split), index);
    return finished(files->example(split, index));
  }
  constexpr int kDraws = 2000;  // one in four belongs: by chance never refused 2000 times
  for (int draw = 0; draw < kDraws; draw++) {
    Example e = do_example(random);
    if (split_of(e) == split) return finished(std::move(e));
  }
  throw_error(
      fmt::format("none of {} draws belongs to the {} split: these parameters have too few "
                  "different inputs",
                  kDraws, to_string(split)));
}

Example Task::any_example(uint64_t seed, Split split, int64_t index) const {
  if (source()) return example(seed, split, index);
  Rng random = stream(seed, split, index);
  return finished(do_example(random));
}

int64_t Task::count(Split split) const {
  const int64_t wanted = split == Split::train ? params_.integer("train_examples")
                                               : std::numeric_limits<int64_t>::max();
  return source() ? std::min(wanted, source()->count(split)) : wanted;
}

std::vector<ParamSpec> TaskInfo::accepted() const {
  std::vector<ParamSpec> all = params;
  if (presets.empty()) return all;
  std::vector<std::string> names;
  for (const Preset& preset : presets) names.push_back(preset.name);
  all.emplace_back("preset", names, "a named level; parameters given beside it win");
  return all;
}

std::string TaskInfo::default_preset(const std::map<std::string, ParamValue>& given) const {
  const auto data = given.find("data");
  if (data != given.end() && !to_string(data->second).empty()) return "";
  const bool exists = std::any_of(presets.begin(), presets.end(),
                                  [](const Preset& preset) { return preset.name == "standard"; });
  return exists ? "standard" : "";
}

std::vector<ParamSpec> TaskInfo::params_by_default() const {
  std::vector<ParamSpec> specs = params;
  const Params chosen = resolve();
  for (ParamSpec& spec : specs) spec.value = chosen.values().at(spec.name);
  return specs;
}

Params TaskInfo::resolve(const std::map<std::string, ParamValue>& given) const {
  std::map<std::string, ParamValue> values = given;
  const auto chosen = values.extract("preset");
  const std::string wanted = chosen.empty() ? default_preset(given) : to_string(chosen.mapped());
  if (wanted.empty() && chosen.empty()) return Params(name, params, values);
  std::vector<std::string> known;
  for (const Preset& preset : presets) {
    known.push_back(preset.name);
    if (preset.name != wanted) continue;
    values.insert(preset.values.begin(), preset.values.end());
    return Params(name, params, values);
  }
  throw_error(fmt::format("{}: unknown preset '{}'{} (known: {})", name, wanted,
                          nearest_note(wanted, known), fmt::join(known, ", ")));
}

std::unique_ptr<Task> TaskInfo::build(const std::map<std::string, ParamValue>& given) const {
  return make(resolve(given));
}

}  // namespace attn
