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

// Of one row: tokens a second, and the padded pass.
std::vector<std::string> figures_of(const Row& row) {
  const PackedFigures& packed = row.speed().packed.value();
  std::vector<std::string> texts = {rate_text(row.speed().tokens_per_s)};
  if (!packed.padded_time) return {texts[0], "", "", ""};
  const Summary& padded = *packed.padded_time;
  const double half = (padded.ci_high - padded.ci_low) / 2;
  texts.push_back(
      fmt::format("{:.3g} ±{:.0f}%", padded.median * 1e3, std::ceil(100 * half / padded.median)));
  texts.push_back(rate_text(*packed.padded_tokens_per_s));
  texts.push_back(fmt::format("{:.2f}×", *packed.speedup));
  return texts;
}

}  // namespace

Table packed_table(const std::string& group, const Grid& grid) {
  Table table{
      .title = "packed sequences beside a padded batch, times in ms; " + group,
      .columns = {"variant", "packed", "packed tokens/s", "padded", "padded tokens/s", "faster"},
      .rows = {},
      .notes = {}};
  fill(table, grid, show_time);  // and why there is none
  const PackedFigures* any = nullptr;
  for (size_t i = 0; i < grid.labels.size(); ++i) {
    const Row* const row = grid.find(grid.labels[i], grid.columns.back());
    const bool is_ok = row && row->is_ok();
    if (is_ok) any = &row->speed().packed.value();
    for (const std::string& text : is_ok ? figures_of(*row) : std::vector<std::string>(4))
      table.rows[i].push_back(text);
  }
  if (any)
    table.notes.push_back(fmt::format(
        "{}, {} in all, {:.0f} % of those of the padded batch; tokens/s: "
        "positions that are no padding; median ± half its 95 % interval",
        counted(any->sequences, "sequence"), counted(any->tokens, "position"), 100 * any->useful));
  return table;
}

}  // namespace attn
