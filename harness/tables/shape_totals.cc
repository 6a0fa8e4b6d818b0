// Rows by their axes but for the heads; see shape_totals.h.
#include "harness/tables/shape_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "harness/plan/grammar.h"
#include "harness/tables/table.h"
#include "harness/tables/verified_notes.h"

namespace attn {
namespace {

using AxisTexts = std::map<std::string, std::string>;

// The axes that all kinds of layers of a model have in common.
AxisTexts shared_axes(const CellKey& key) {
  AxisTexts texts;
  for (const auto& [name, value] : named_values(key.axes))
    if (name != "heads" && name != "kv_heads" && name != "head_dim") texts[name] = to_string(value);
  return texts;
}

// "length 4096, decode, kv_dtype int8": length, mode, and what the rows differ in.
std::string words_of(const AxisTexts& axes, const std::vector<AxisTexts>& all) {
  std::vector<std::string> words = {"length " + axes.at("length"), axes.at("mode")};
  for (const auto& axis : axes) {
    if (axis.first == "length" || axis.first == "mode") continue;
    if (std::any_of(all.begin(), all.end(), [&](const AxisTexts& other) {
          const auto found = other.find(axis.first);
          return found == other.end() || found->second != axis.second;
        }))
      words.push_back(axis.first + " " + axis.second);
  }
  return join(words, ", ");
}

bool is_of(const ShapeLayer& layer, const CellKey& key) {
  return key.variant == layer.plugin && key.axes.heads == layer.heads &&
         key_heads(key.axes) == layer.own_kv_heads() && key.axes.head_dim == layer.head_dim;
}

// "29 x 0.4 ms + 5 x 1.2 ms = 17.6 ms, state 96 MiB"; nullopt unless each kind of layer has one
// time.
std::optional<std::string> total_of(const ModelShape& shape, const std::vector<const Row*>& rows) {
  std::vector<std::string> terms;
  double seconds = 0, state = 0;
  bool has_state = true;
  for (const ShapeLayer& layer : shape.layers) {
    std::vector<const Row*> found;
    for (const Row* const row : rows)
      if (is_of(layer, row->key)) found.push_back(row);
    if (found.size() != 1) return std::nullopt;
    const Row& row = *found[0];
    const SpeedMetrics& speed = row.speed();
    const auto count = static_cast<double>(layer.count);
    seconds += count * speed.time.median;
    has_state = has_state && speed.state_bytes.has_value();
    state += count * static_cast<double>(speed.state_bytes.value_or(0));
    terms.push_back(fmt::format("{} x {}{}{}", layer.count, human_seconds(speed.time.median),
                                row.result.noisy.empty() ? "" : "*", verified_mark(row)));
  }
  return fmt::format("{} = {}{}", join(terms, " + "), human_seconds(seconds),
                     has_state ? ", state " + human_bytes(state) : "");
}

}  // namespace

std::string shape_totals(const std::vector<ModelShape>& shapes, const std::vector<Row>& rows) {
  std::vector<AxisTexts> contexts;  // in the order of rows
  std::map<AxisTexts, std::vector<const Row*>> timed;
  for (const Row& row : rows) {
    const bool is_timed = row.key.measure == Measure::speed && row.is_ok() &&
                          row.key.axes.scope != ScopeKind::model;  // a model has layers of its own
    if (!is_timed) continue;
    const AxisTexts axes = shared_axes(row.key);
    if (!timed.contains(axes)) contexts.push_back(axes);
    timed[axes].push_back(&row);
  }
  std::string text;
  for (const ModelShape& shape : shapes)
    for (const AxisTexts& axes : contexts)
      if (const auto total = total_of(shape, timed[axes]))
        text += fmt::format("  {} at {}: {}\n", shape.name, words_of(axes, contexts), *total);
  return text.empty() ? ""
                      : "all layers of a model, the times of its kinds of layers added\n" + text;
}

}  // namespace attn
