// See scope_notes.h.
#include "harness/tables/scope_notes.h"

#include <fmt/format.h>

#include <map>

#include "harness/measure/workload.h"
#include "harness/plan/labels.h"
#include "harness/tables/grid.h"
#include "variants/catalog.h"

namespace attn {
namespace {

int64_t layers_of(const Row& row) {
  if (scope_of(row) != ScopeKind::model) return 1;
  return row.key.axes.layers.value_or(kModelLayers);
}

// The time of the same variant in another scope at the shape of `row`; null where it lacks.
const Row* in_scope(const Row& row, ScopeKind scope, const std::vector<Row>& all) {
  for (const Row& other : all) {
    if (other.key.measure != Measure::speed || !other.is_ok() || scope_of(other) != scope) continue;
    Axes axes = row.key.axes;
    axes.scope = other.key.axes.scope;
    axes.layers = other.key.axes.layers;
    axes.repetitions = other.key.axes.repetitions;
    if (other.key.variant == row.key.variant && other.key.axes == axes) return &other;
  }
  return nullptr;
}

double median(const Row& row) { return row.speed().time.median; }

// Its time is of tokens from a state, alone or beside prompts.
bool answers_tokens(const Row& row) { return row.key.axes.mode && decodes(*row.key.axes.mode); }

using Label = std::function<std::string(const Row&)>;

// Of a figure from these rows.
const char* mark_of(std::initializer_list<const Row*> rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const Row* row) { return !row->result.noisy.empty(); })
             ? "*"
             : "";
}

// By length: "full 34 %" of the time of its layer or model.
std::map<int64_t, std::set<std::string>> shares_of_attention(const std::vector<const Row*>& rows,
                                                             const std::vector<Row>& all,
                                                             const Label& label) {
  std::map<int64_t, std::set<std::string>> shares;
  for (const Row* row : rows) {
    if (row->key.measure != Measure::speed || !row->is_ok() ||
        scope_of(*row) == ScopeKind::attention)
      continue;
    if (const Row* const alone = in_scope(*row, ScopeKind::attention, all))
      shares[row->key.axes.length.value()].insert(
          fmt::format("{} {:.0f} %{}", label(*row),
                      100 * static_cast<double>(layers_of(*row)) * median(*alone) / median(*row),
                      mark_of({row, alone})));
  }
  return shares;
}

// "gla 1.31 at 1024": in a layer, over exact attention in a layer, at the longest such length.
std::set<std::string> ratios_in_layer(const std::vector<const Row*>& rows,
                                      const std::vector<Row>& all, const Label& label) {
  struct Ratio {
    int64_t length = 0;
    double value = 0;
    std::string mark;
  };
  std::map<std::string, Ratio> found;
  for (const Row* row : rows) {
    if (row->key.measure != Measure::speed || !row->is_ok() || !leaves_out_gates(*row)) continue;
    const Row* const own = in_scope(*row, ScopeKind::layer, all);
    if (!own) continue;
    for (const Row& exact : all) {
      if (exact.key.measure != Measure::speed || !exact.is_ok() ||
          label_of(exact) != exact_reference().name)
        continue;
      Axes axes = own->key.axes;
      axes.repetitions = exact.key.axes.repetitions;
      if (exact.key.axes != axes) continue;
      Ratio& longest = found[label(*row)];
      if (axes.length.value() > longest.length)
        longest = {axes.length.value(), median(*own) / median(exact), mark_of({own, &exact})};
    }
  }
  std::set<std::string> texts;
  for (const auto& [name, at] : found)
    texts.insert(fmt::format("{} {:.3g}{} at {}", name, at.value, at.mark, at.length));
  return texts;
}

}  // namespace

bool leaves_out_gates(const Row& row) {
  const VariantInfo* const info = known_variant(row.key.variant);
  return info && info->traits.gated && scope_of(row) == ScopeKind::attention;
}

std::vector<std::string> scope_notes(const std::vector<const Row*>& rows,
                                     const std::vector<Row>& all, const Label& label) {
  std::vector<std::string> notes;
  const bool reads_gates =
      std::any_of(rows.begin(), rows.end(), [](const Row* row) { return leaves_out_gates(*row); });
  if (reads_gates)
    notes.push_back(
        fmt::format("{}: reads gates, whose projections are outside scope attention and not "
                    "counted here{}",
                    kGatesSign, answers_tokens(*rows[0]) ? "" : "; --scope layer counts them"));
  if (const auto ratios = ratios_in_layer(rows, all, label); !ratios.empty())
    notes.push_back("in a layer, with these projections, of full's time: " + joined(ratios));
  if (std::any_of(rows.begin(), rows.end(),
                  [](const Row* row) { return row->key.axes.kv_heads && !answers_tokens(*row); }))
    notes.emplace_back(
        "kv_heads: a pass copies keys and values for every query head, in time and memory; "
        "decoding need not");
  if (std::any_of(rows.begin(), rows.end(), [](const Row* row) {
        return scope_of(*row) == ScopeKind::attention && has_paper_block(row->key.variant);
      }))
    notes.emplace_back(
        "block=paper: the paper's layer, with its projections, which variants that read queries "
        "and keys leave out");
  const auto shares = shares_of_attention(rows, all, label);
  for (const auto& [length, texts] : shares)
    if (length == shares.begin()->first || length == shares.rbegin()->first)
      notes.push_back(
          fmt::format("of this time attention alone takes at {}: {}", length, joined(texts)));
  return notes;
}

}  // namespace attn
