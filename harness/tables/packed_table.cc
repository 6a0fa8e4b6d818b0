// See packed_table.h.
#include "harness/tables/packed_table.h"

#include <cmath>

#include <fmt/format.h>

namespace attn {
namespace {

std::string rate_text(double tokens_per_s) { return fmt::format("{:.4g}", tokens_per_s); }

std::string counted(int64_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// Whether the interval of the ratio of both times holds 1.
bool is_open(const PackedFigures& packed) {
  return packed.speedup_ci_low && packed.speedup_ci_high && *packed.speedup_ci_low <= 1 &&
         *packed.speedup_ci_high >= 1;
}

// Rows of earlier versions have none, nor have those of one visit with fewer than
// 6 pairs of samples.
std::string interval_text(const PackedFigures& packed) {
  if (!packed.speedup_ci_low || !packed.speedup_ci_high) return "-";
  return fmt::format("{:.2f} to {:.2f}{}", *packed.speedup_ci_low, *packed.speedup_ci_high,
                     is_open(packed) ? ", undecided" : "");
}

// Of one row: tokens a second, and the padded pass.
std::vector<std::string> figures_of(const Row& row) {
  const PackedFigures& packed = row.speed().packed.value();
  std::vector<std::string> texts = {rate_text(row.speed().tokens_per_s)};
  if (!packed.padded_time) return {texts[0], "", "", "", ""};
  const Summary& padded = *packed.padded_time;
  const double half = (padded.ci_high - padded.ci_low) / 2;
  texts.push_back(
      fmt::format("{:.3g} ±{:.0f}%", padded.median * 1e3, std::ceil(100 * half / padded.median)));
  texts.push_back(rate_text(*packed.padded_tokens_per_s));
  texts.push_back(fmt::format("{:.2f}×", *packed.speedup));
  texts.push_back(interval_text(packed));
  return texts;
}

}  // namespace

Table packed_table(const std::string& group, const Grid& grid) {
  Table table{.title = "packed sequences beside a padded batch, times in ms; " + group,
              .columns = {"variant", "packed", "packed tokens/s", "padded", "padded tokens/s",
                          "faster", "interval"},
              .rows = {},
              .notes = {}};
  fill(table, grid, show_time);  // and why there is none
  const PackedFigures* any = nullptr;
  bool has_padded = false, is_undecided = false;
  for (size_t i = 0; i < grid.labels.size(); ++i) {
    const Row* const row = grid.find(grid.labels[i], grid.columns.back());
    const bool is_ok = row && row->is_ok();
    if (is_ok) any = &row->speed().packed.value();
    has_padded |= is_ok && any->padded_time;
    is_undecided |= is_ok && is_open(*any);
    for (const std::string& text : is_ok ? figures_of(*row) : std::vector<std::string>(5))
      table.rows[i].push_back(text);
  }
  if (any)
    table.notes.push_back(fmt::format(
        "{}, {} in all, {:.0f} % of those of the padded batch; tokens/s: "
        "positions that are no padding; median ± half its 95 % interval",
        counted(any->sequences, "sequence"), counted(any->tokens, "position"), 100 * any->useful));
  if (has_padded)
    table.notes.push_back(fmt::format(
        "faster: the padded median over the packed one, and its 95 % interval from samples taken "
        "in turn{}",
        is_undecided ? "; undecided: it holds 1, so that the times do not tell the two apart"
                     : ""));
  return table;
}

}  // namespace attn
