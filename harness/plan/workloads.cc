// See workloads.h.
#include "harness/plan/workloads.h"

#include <algorithm>

#include "core/base/check.h"
#include "harness/measure/mixed_batch.h"
#include "harness/measure/served_calls.h"

namespace attn {
namespace {

bool is_decided(const Setting& axis) {
  return std::find(kDecidedByWorkload.begin(), kDecidedByWorkload.end(), axis.name) !=
         kDecidedByWorkload.end();
}

}  // namespace

void settle_workloads(const SweepRequest& request, std::vector<Setting>& axes) {
  const auto named = [&](const char* name) {
    return std::find_if(axes.begin(), axes.end(),
                        [&](const Setting& axis) { return axis.name == name; });
  };
  const auto workload = named("workload"), arrivals = named("arrivals");
  if (workload == axes.end()) {
    ATTN_CHECK(arrivals == axes.end(),
               "axis arrivals={} needs a workload at whose server requests arrive, such as "
               "--workload 2q2k_32q1kv1k",
               join(arrivals->values));
    return;
  }
  for (std::string& word : workload->values) word = to_string(parse_mixed_batch(word));
  const std::string words = join(workload->values);
  if (arrivals != axes.end())
    for (const std::string& word : workload->values)
      if (const auto why = why_no_arrivals(parse_mixed_batch(word)))
        throw_error(fmt::format("axis arrivals={} does not apply to workload {}: {}",
                                join(arrivals->values), word, *why));
  ATTN_CHECK(request.tokens == 0, "--tokens {} does not apply to a workload: {} has its own",
             request.tokens, words);
  for (const char* axis : kDecidedByWorkload)
    if (const auto given = request.axes.find(axis); given != request.axes.end())
      throw_error(fmt::format(
          "axis {}={} does not apply to a workload: {} says how many sequences of which length "
          "there are, of attention alone, and they are causal",
          axis, given->second, words));
  ATTN_CHECK(!request.breakdown, "--breakdown is of passes, and workload {} is of calls", words);
  std::erase_if(axes, is_decided);
}

void decide_by_workload(Axes& axes) {
  if (!axes.workload) return;
  const MixedBatch batch = parse_mixed_batch(*axes.workload);
  axes.length = longest_of(batch);
  axes.batch = sequences_of(batch);
  axes.mode = Mode::serve;
  axes.scope = ScopeKind::attention;
  axes.causal = true;
}

}  // namespace attn
