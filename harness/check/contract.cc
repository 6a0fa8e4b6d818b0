// The table of variant checks, and the function that runs one check. A check is one line of the
// table and one function in the source of its topic. Level::quick takes well under a second per
// variant.
#include "harness/check/contract.h"

#include <algorithm>
#include <exception>

#include "core/base/parallel.h"
#include "harness/check/double_checks.h"
#include "harness/check/variant_checks.h"
#include "variants/catalog.h"

namespace attn {
namespace {

using attn_check::Outcome;
using attn_check::Result;

constexpr const char* kThrew = "threw";

bool always(const VariantInfo&) { return true; }
bool causal(const VariantInfo& info) { return info.traits.causal; }
bool padding(const VariantInfo& info) { return info.traits.padding; }
bool hides(const VariantInfo& info) {
  return info.traits.padding || (info.traits.causal && info.traits.cross);
}
bool cross(const VariantInfo& info) { return info.traits.cross; }
bool convex(const VariantInfo& info) { return info.traits.convex; }
bool permutable(const VariantInfo& info) { return info.traits.permutable; }
bool exact(const VariantInfo& info) { return info.traits.exact; }
bool decodes(const VariantInfo& info) { return info.traits.decode; }
bool caches(const VariantInfo& info) { return info.traits.typed_cache && info.reference; }
bool rowwise(const VariantInfo& info) { return info.traits.rowwise; }
bool edges(const VariantInfo& info) { return info.traits.edges; }
bool packs(const VariantInfo& info) { return !info.is_stack(); }
bool carries(const VariantInfo& info) { return info.carries && info.reference; }
bool referenced(const VariantInfo& info) { return static_cast<bool>(info.reference); }
// All but mixers whose channels meet or that are no linear map.
bool by_weights(const VariantInfo& info) { return !info.traits.mixer || info.traits.convex; }
bool linear(const VariantInfo& info) { return by_weights(info) && !info.traits.nonlinear; }
// Under one of the masks: what never sees the future has a limit under the causal one alone.
bool has_limit(const VariantInfo& info) {
  AttentionShape shape{.q_len = 65, .kv_len = 65, .head_dim = 8};
  if (!info.limit || info.limit(shape)) return static_cast<bool>(info.limit);
  shape.causal = true;
  return info.limit(shape).has_value();
}

bool in_catalog(const VariantInfo& info) {
  const auto& list = all_variants();
  return std::any_of(list.begin(), list.end(), [&](const VariantInfo& one) {
    return &one == &info || (one.has_paper_layer() && &with_paper_block(one) == &info);
  });
}

std::string subject_name(const VariantInfo& info, const Params& params, bool given) {
  return given ? fmt::format("{}[{}]", info.name, params.str()) : info.name;
}

}  // namespace

const std::vector<VariantCheck>& variant_check_table() {
  using enum Precision;
  static const std::vector<VariantCheck> table = {
      {"causality", check_causality, causal, true, also_double, true},
      {"padding", check_padding, padding, true, also_double, true},
      {"empty_rows", check_empty_rows, hides, true, as_built},
      {"linearity", check_linearity, linear, true, also_double},
      {"convexity", check_convexity, convex, true, also_double},
      {"permutation", check_permutation, permutable, true, also_double},
      {"range", check_range, always, true, as_built},
      {"channels", check_channels, always, true, as_built},
      {"batch", check_batch, always, true, as_built},
      {"heads", check_heads, by_weights, true, as_built},
      {"queries", check_queries, cross, true, as_built},
      {"rowwise", check_rowwise, rowwise, true, also_double},
      {"packed", check_packed, packs, true, as_built, true},
      {"edges", check_edges, edges, true, also_double},
      {"gradients", check_gradients, always, true, only_double},
      {"reference", check_reference, referenced, true, double_in_full, true},
      {"carried", check_carried, carries, true, also_double},
      {"bfloat16", check_bfloat16, always, true, as_built, true},
      {"exact", check_exact, exact, true, also_double},
      {"limit", check_limit, has_limit, true, also_double},
      {"flops", check_flops, always, true, as_built},
      {"memory", check_memory, always, true, as_built},
      {"decode", check_decode, decodes, true, double_in_full, true},
      {"kv_dtype", check_typed_cache, caches, true, as_built, true},
      {"recording", check_recording, always, true, as_built, true},
      {"calls", check_calls, always, true, as_built},
      {"weights", check_weights, always, true, as_built},
      {"determinism", check_determinism, always, false, as_built},
      {"threads", check_threads, always, false, as_built, true},
  };
  return table;
}

Result run_check(const VariantCheck& check, const Subject& subject) {
  Result result{subject_name(subject.info, subject.params, !subject.given.empty()), check.name,
                Outcome::passed, ""};
  try {
    Verdict verdict;
    check.run(subject, verdict);
    if (verdict.skipped() || verdict.empty())
      result.outcome = Outcome::skipped;
    else if (verdict.failed())
      result.outcome = Outcome::failed;
    result.detail = verdict.skipped() ? verdict.why_skipped()
                    : verdict.empty() ? subject.why_no_shape()
                                      : verdict.detail();
  } catch (const std::exception& error) {
    result.outcome = Outcome::failed;
    result.detail = fmt::format("{}: {}", kThrew, error.what());
  }
  return result;
}

std::vector<Result> check_variant(const VariantInfo& info,
                                  const std::map<std::string, ParamValue>& params,
                                  attn_check::Level level, const std::string& only) {
  const Subject subject(info, params, level);
  const bool catalogued = !kIsDouble && in_catalog(info);
  const bool bridged = catalogued && attn_check::checks_in_double();
  std::vector<Result> results;
  for (const VariantCheck& check : variant_check_table()) {
    if ((!only.empty() && only != check.name) || !check.applies(info)) continue;
    if (!subject.full() && !check.quick) continue;
    if (catalogued && check.precision == Precision::only_double) {
      if (!bridged)
        results.push_back({subject_name(info, subject.params, !params.empty()), check.name,
                           Outcome::skipped, "this build has no double precision (ATTN_F64=OFF)"});
      continue;
    }
    results.push_back(run_check(check, subject));
  }
  if (bridged) {
    const std::vector<Result> more = attn_check::check_in_double(info.name, params, level, only);
    results.insert(results.end(), more.begin(), more.end());
  }
  return results;
}

std::vector<Result> check_variant_at(const VariantInfo& info,
                                     const std::map<std::string, ParamValue>& params,
                                     const AttentionShape& like, int thread_count,
                                     int64_t kv_heads) {
  constexpr int64_t kMostHeads = 4, kMostKeyHeads = 2;
  Subject subject(info, params, attn_check::Level::quick);
  subject.only = like;
  subject.only->batch = 2;
  subject.only->heads = std::min(like.heads, kMostHeads);
  subject.published_heads = like.heads;
  if (kv_heads > 0) {  // as many query heads share one, all of fewer groups
    subject.only_kv_heads = std::min(kv_heads, kMostKeyHeads);
    subject.only->heads = like.heads / kv_heads * subject.only_kv_heads;
  }
  // 129 is past a tile of 128, two of 64 and any number of strips. The others are for parameters
  // that rule it out.
  for (const int64_t length : {129, 128, 257, 513, 1024, 2049}) {
    subject.only->q_len = subject.only->kv_len = length;
    if (subject.can_run(*subject.only)) break;
  }
  const auto is_asked = [&](const VariantCheck& check) {
    if (!check.at_published || !check.applies(info)) return false;
    const bool is_of_cache = check.run == check_typed_cache;
    if (like.cache != CacheType::float32 || is_of_cache)
      return like.cache != CacheType::float32 && is_of_cache;
    const bool is_of_bfloat16 = check.run == check_bfloat16;
    if (like.dtype == Dtype::bfloat16 || is_of_bfloat16)
      return like.dtype == Dtype::bfloat16 && is_of_bfloat16;
    return kv_heads == 0 || check.run == check_decode;
  };
  const ScopedThreads scoped(thread_count);
  std::vector<Result> results;
  for (const VariantCheck& check : variant_check_table())
    if (is_asked(check)) results.push_back(run_check(check, subject));
  return results;
}

std::vector<std::string> variant_check_names(const VariantInfo& info) {
  std::vector<std::string> names;
  for (const VariantCheck& check : variant_check_table())
    if (check.applies(info)) names.emplace_back(check.name);
  return names;
}

std::vector<std::string> double_check_names(const VariantInfo& info) {
  std::vector<std::string> names;
  for (const VariantCheck& check : variant_check_table())
    if (check.applies(info) && check.precision != Precision::as_built)
      names.emplace_back(check.name);
  return names;
}

std::string report_line(const Result& result, bool color) {
  const bool red = result.outcome == Outcome::failed, skipped = result.outcome == Outcome::skipped;
  const char* const word = red ? "RED " : skipped ? "skip" : "ok  ";
  const char* const paint = !color ? "" : red ? "\033[1;31m" : skipped ? "\033[33m" : "\033[32m";
  return fmt::format("{}{}{} {:<28} {:<26} {}\n", paint, word, color ? "\033[0m" : "",
                     result.subject, result.name, result.detail);
}

std::vector<std::string> remarks_on(const std::vector<Result>& results, bool has_formula) {
  // What throws or is not finite fails any check, as does a function that keeps something between
  // calls or changes its inputs; a leak through a mask fails those of the mathematics. So the
  // causes come first, by these ranks.
  static const std::vector<std::string> causes = {
      "range", "recording", "calls", "determinism", "causality", "padding", "empty_rows", "edges"};
  const auto check_of = [](const Result& result) {
    return result.name.substr(0, result.name.find(" ("));  // as built and in double
  };
  const auto rank = [&](const Result* result) {
    if (result->detail.starts_with(kThrew)) return std::ptrdiff_t{-1};
    return std::find(causes.begin(), causes.end(), check_of(*result)) - causes.begin();
  };
  std::vector<const Result*> red;
  for (const Result& result : results)
    if (result.outcome == Outcome::failed &&
        std::none_of(red.begin(), red.end(),
                     [&](const Result* one) { return check_of(*one) == check_of(result); }))
      red.push_back(&result);
  std::vector<std::string> remarks;
  if (red.size() > 1) {
    const Result& first = **std::min_element(red.begin(), red.end(),
                                             [&](auto* a, auto* b) { return rank(a) < rank(b); });
    remarks.push_back(fmt::format("{}: mend {} first; the other red checks may follow from it",
                                  first.subject, check_of(first)));
  }
  if (!has_formula && !results.empty())
    remarks.push_back(
        fmt::format("{}: unreferenced: a wrong formula would not be seen, only a broken promise",
                    results[0].subject));
  return remarks;
}

bool all_passed(const std::vector<Result>& results) {
  return std::none_of(results.begin(), results.end(),
                      [](const Result& result) { return result.outcome == Outcome::failed; });
}

}  // namespace attn
