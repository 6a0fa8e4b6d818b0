// See serving_table.h.
#include "harness/tables/serving_table.h"

#include <functional>
#include <utility>

#include "harness/measure/served_calls.h"
#include "harness/tables/verified_notes.h"

namespace attn {
namespace {

using Show = std::function<std::string(const Row&)>;

std::string noisy_mark(const Row& row) { return row.result.noisy.empty() ? "" : "*"; }

std::string in_ms(double seconds) { return fmt::format("{:.3g}", seconds * 1e3); }

const ServingFigures& serving_of(const Row& row) { return row.speed().serving.value(); }

std::vector<std::pair<std::string, Show>> columns_of(bool has_prompts) {
  std::vector<std::pair<std::string, Show>> columns = {{"call", show_time}};
  if (has_prompts)
    columns.emplace_back("first token",
                         [](const Row& row) { return in_ms(*serving_of(row).first_token_s); });
  columns.emplace_back("token p50",
                       [](const Row& row) { return in_ms(serving_of(row).token_p50_s); });
  columns.emplace_back("p99", [](const Row& row) { return in_ms(serving_of(row).token_p99_s); });
  columns.emplace_back("tokens/s of the call", [](const Row& row) {
    return fmt::format("{:.4g}", row.speed().tokens_per_s);
  });
  columns.emplace_back("generated/s", [](const Row& row) {
    return fmt::format("{:.4g}", serving_of(row).generated_per_s);
  });
  columns.emplace_back("state", [](const Row& row) {
    const auto& bytes = row.speed().state_bytes;
    return bytes ? human_bytes(static_cast<double>(*bytes)) : "";
  });
  return columns;
}

const QueueFigures& queue_of(const Row& row) { return row.speed().queue.value(); }

// Where it does not, first tokens wait the longer the more requests are simulated.
bool is_sustained(const QueueFigures& queue) { return queue.rate < queue.sustained_rate; }

// Of requests in a queue.
std::vector<std::pair<std::string, Show>> columns_of_queue() {
  const auto token = [](double QueueFigures::*figure) {
    return [figure](const Row& row) { return in_ms(queue_of(row).*figure); };
  };
  const auto first_token = [](double QueueFigures::*figure) {
    return [figure](const Row& row) {
      return is_sustained(queue_of(row)) ? in_ms(queue_of(row).*figure) : "";
    };
  };
  return {{"call", show_time},
          {"first token p50", first_token(&QueueFigures::first_token_p50_s)},
          {"first token p99", first_token(&QueueFigures::first_token_p99_s)},
          {"token p50", token(&QueueFigures::token_p50_s)},
          {"token p99", token(&QueueFigures::token_p99_s)},
          {"busy",
           [](const Row& row) { return fmt::format("{:.0f}%", 100 * queue_of(row).utilisation); }},
          {"sustained/s", [](const Row& row) {
             const QueueFigures& queue = queue_of(row);
             return fmt::format("{:.3g}{}{}", queue.sustained_rate, noisy_mark(row),
                                is_sustained(queue) ? "" : " !");
           }}};
}

std::string note_on(const QueueFigures& queue, const ServedRequests& requests) {
  std::string counts, prompts;
  for (const ServedCall& call : queue.calls) {
    std::string& list = call.prompt > 0 ? prompts : counts;
    list +=
        (list.empty() ? "" : ", ") + std::to_string(call.prompt > 0 ? call.prompt : call.sequences);
  }
  return fmt::format(
      "{} requests, {:g} a second by a Poisson process, simulated on medians of measured times: of "
      "a prompt of {} alone, and of a token for {} sequences on caches of {}, a mean prompt and "
      "half "
      "of a request's {} tokens; between these numbers times are interpolated, and a call takes "
      "the "
      "sum of its parts. p50 and p99 are over these requests; that calls of one kind differ in "
      "time "
      "is not in them. A call takes prompts that wait, and gives every request whose prompt is "
      "done "
      "a token. First token: from the arrival. sustained: the most requests a second; !: more "
      "arrive, the queue grows for ever, and first tokens have no p50 and p99",
      queue.requests, queue.rate, prompts, counts, requests.cache, requests.rule.tokens);
}

}  // namespace

Table serving_table(const std::string& group, const Grid& grid) {
  const ServingFigures* any = nullptr;
  for (const auto& [place, row] : grid.cells)
    if (row->is_ok() && row->speed().serving) any = &serving_of(*row);
  const Row* queued = nullptr;
  for (const auto& [place, row] : grid.cells)
    if (row->is_ok() && row->speed().queue) queued = row;
  const auto columns = queued ? columns_of_queue() : columns_of(any && any->first_token_s);
  Table table{.title = "workload as it is served, times in ms; " + group,
              .columns = {"variant"},
              .rows = {},
              .notes = {}};
  for (const auto& [name, show] : columns) table.columns.push_back(name);
  fill(table, grid, show_time);  // and why there is none
  for (size_t i = 0; i < grid.labels.size(); ++i) {
    const Row* const row = grid.find(grid.labels[i], grid.columns.back());
    const bool is_ok = row && row->is_ok();
    for (size_t j = 1; j < columns.size(); ++j) {
      std::string text = is_ok ? columns[j].second(*row) : "";
      const std::string& name = columns[j].first;
      if (!text.empty() && name != "state" && name != "sustained/s") text += noisy_mark(*row);
      table.rows[i].push_back(std::move(text));
    }
  }
  if (queued)
    table.notes.push_back(note_on(*queued->speed().queue,
                                  requests_of(parse_mixed_batch(*queued->key.axes.workload))));
  if (any && !queued)
    table.notes.push_back(fmt::format(
        "call: all sequences in one call (median ± half its 95 % interval){}; token: between two "
        "tokens of a sequence, in that call and {} calls after it of one token each; state: of "
        "all sequences",
        any->first_token_s ? ", and so the time to the first token of its prompts" : "",
        any->calls - 1));
  return table;
}

}  // namespace attn
