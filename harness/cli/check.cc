// attnbench check [NAME...]: the contract checks of variants and tasks, a line each; exit 5 when
// one is red. With --derive: the cost of a variant as formulas, fitted to what was counted.
#include "harness/check/contract.h"

#include "core/base/check.h"
#include "harness/check/derive.h"
#include "harness/cli/specs.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/plan/python_variants.h"
#include "harness/store/fields.h"

namespace attn::cli {
namespace {

using attn_check::Outcome;

struct Counts {
  int passed = 0, failed = 0, skipped = 0;
};

void print_results(const std::vector<attn_check::Result>& results, bool color, bool quiet,
                   Counts& counts) {
  for (const attn_check::Result& result : results) {
    const bool red = result.outcome == Outcome::failed,
               skipped = result.outcome == Outcome::skipped;
    (red ? counts.failed : skipped ? counts.skipped : counts.passed)++;
    if (quiet && !red) continue;
    print(report_line(result, color));
  }
}

// Those of a variant in Python run in its interpreter, by the same code.
std::vector<attn_check::Result> results_of(const VariantInfo& info,
                                           const std::map<std::string, ParamValue>& params,
                                           attn_check::Level level) {
  const PythonVariant* const python = python_variant(info.name);
  if (!python) return check_variant(info, params, level);
  const Json answer = answer_of_python(
      *python, "check",
      {{"params", attn::json_of(params)}, {"full", level == attn_check::Level::full}});
  std::vector<attn_check::Result> results;
  for (const Json& one : answer.at("results"))
    results.push_back({.subject = one.at(0),
                       .name = one.at(1),
                       .outcome = one.at(2) == "passed"   ? Outcome::passed
                                  : one.at(2) == "failed" ? Outcome::failed
                                                          : Outcome::skipped,
                       .detail = one.at(3)});
  return results;
}

// A name that a variant and a task share means the variant.
int derive(std::vector<Chosen> chosen, const Arguments& arguments) {
  ATTN_CHECK(!arguments.has("quick") && !arguments.has("quiet"),
             "--derive runs no checks: --quick and --quiet do not go with it");
  ATTN_CHECK(!chosen.empty(),
             "--derive needs the name of a variant: attnbench check NAME --derive");
  for (const std::string& word : arguments.words()) choose_variant(word);
  std::erase_if(chosen, [](const Chosen& one) { return !one.variant; });
  for (const Chosen& one : chosen) print(derive_cost(*one.variant, one.params).text());
  return kOk;
}

int run_check(const Arguments& arguments) {
  const bool color =
      wants_color(arguments.one_of("color", {"auto", "always", "never"}), Stream::out);
  const auto level = arguments.has("quick") ? attn_check::Level::quick : attn_check::Level::full;
  std::vector<Chosen> chosen;
  for (const std::string& word : arguments.words())
    for (Chosen& one : choose(word)) chosen.push_back(std::move(one));
  if (chosen.empty() && !arguments.has("derive")) {
    for (const VariantInfo& info : all_variants()) chosen.push_back({.variant = &info});
    for (const TaskInfo& info : all_tasks()) chosen.push_back({.task = &info});
  }
  if (arguments.has("derive")) return derive(chosen, arguments);
  Counts counts;
  std::string remarks;
  for (const Chosen& one : chosen) {
    const std::vector<attn_check::Result> results =
        one.variant ? results_of(*one.variant, one.params, level)
                    : check_task(*one.task, one.params, level);
    print_results(results, color, arguments.has("quiet"), counts);
    const bool has_formula = !one.variant || one.variant->reference || one.variant->traits.exact;
    for (const std::string& remark : remarks_on(results, has_formula)) remarks += remark + "\n";
  }
  warn(fmt::format("{} passed, {} red, {} skipped\n{}", counts.passed, counts.failed,
                   counts.skipped, remarks));
  return counts.failed ? kCheckFailed : kOk;
}

}  // namespace

Verb check_verb() {
  return {.name = "check",
          .usage = "[NAME...] | NAME --derive",
          .summary = "runs the contract checks on variants and tasks; exit 5 when one is red",
          .options = {{"quick", 0, "", "only the checks that `run` asks before it publishes"},
                      {"derive", 0, "",
                       "a variant: fit formulas to the counted cost and print them as do_cost"},
                      {"quiet", 'q', "", "print red checks only"},
                      plugin_option(),
                      {"color", 0, "WHEN", "auto, always or never"}},
          .max_words = 1000,
          .run = run_check};
}

}  // namespace attn::cli
