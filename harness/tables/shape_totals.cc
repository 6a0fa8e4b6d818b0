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

// The axes that all kinds of layers of a model have in common, as words.
std::string shared_axes(const Axes& axes) {
  std::vector<std::string> words = {fmt::format("length {}", axes.length.value_or(0))};
  if (axes.batch.value_or(1) > 1) words.push_back(fmt::format("batch {}", *axes.batch));
  if (axes.mode) words.emplace_back(name_of(*axes.mode));
  if (axes.causal.value_or(false) && axes.mode != Mode::decode) words.emplace_back("causal");
  if (axes.scope && *axes.scope != ScopeKind::attention)
    words.push_back(fmt::format("scope {}", name_of(*axes.scope)));
  if (axes.dtype) words.emplace_back(name_of(*axes.dtype));
  if (axes.threads.value_or(1) > 1) words.push_back(fmt::format("{} threads", *axes.threads));
  return join(words, ", ");
}

bool is_of(const ShapeLayer& layer, const CellKey& key) {
  const int64_t kv_heads = layer.kv_heads > 0 ? layer.kv_heads : layer.heads;
  return key.variant.name == parse_spec(layer.variant).name && key.axes.heads == layer.heads &&
         key_heads(key.axes) == kv_heads && key.axes.head_dim == layer.head_dim;
}

// "29 x 0.4 ms + 5 x 1.2 ms = 17.6 ms, state 96 MiB"; nullopt where a kind of layer has no time.
std::optional<std::string> total_of(const ModelShape& shape, const std::vector<const Row*>& rows) {
  std::vector<std::string> terms;
  double seconds = 0, state = 0;
  for (const ShapeLayer& layer : shape.layers) {
    const auto found = std::find_if(rows.begin(), rows.end(),
                                    [&](const Row* row) { return is_of(layer, row->key); });
    if (found == rows.end()) return std::nullopt;
    const SpeedMetrics& speed = (*found)->speed();
    const auto count = static_cast<double>(layer.count);
    seconds += count * speed.time.median;
    state += count * static_cast<double>(speed.state_bytes.value_or(0));
    terms.push_back(fmt::format("{} x {}{}{}", layer.count, human_seconds(speed.time.median),
                                (*found)->result.noisy.empty() ? "" : "*", verified_mark(**found)));
  }
  return fmt::format("{} = {}{}", join(terms, " + "), human_seconds(seconds),
                     state > 0 ? ", state " + human_bytes(state) : "");
}

}  // namespace

std::string shape_totals(const std::vector<ModelShape>& shapes, const std::vector<Row>& rows) {
  std::vector<std::pair<std::string, std::vector<const Row*>>> contexts;  // in the order of rows
  for (const Row& row : rows) {
    const bool is_timed = row.key.measure == Measure::speed && row.is_ok() &&
                          row.key.axes.scope != ScopeKind::model;  // a model has layers of its own
    if (!is_timed) continue;
    const std::string words = shared_axes(row.key.axes);
    auto context = std::find_if(contexts.begin(), contexts.end(),
                                [&](const auto& known) { return known.first == words; });
    if (context == contexts.end()) context = contexts.insert(contexts.end(), {words, {}});
    context->second.push_back(&row);
  }
  std::string text;
  for (const ModelShape& shape : shapes)
    for (const auto& [words, own] : contexts)
      if (const auto total = total_of(shape, own))
        text += fmt::format("  {} at {}: {}\n", shape.name, words, *total);
  return text.empty() ? ""
                      : "all layers of a model, the times of its kinds of layers added\n" + text;
}

}  // namespace attn
