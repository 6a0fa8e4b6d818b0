// See packings.h.
#include "harness/plan/packings.h"

#include <algorithm>

#include "core/base/check.h"
#include "harness/measure/packed_lengths.h"

namespace attn {
namespace {

template <class Names>
bool names_it(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const Setting* setting_of(const std::vector<Setting>& axes, const std::string& name) {
  const auto found = std::find_if(axes.begin(), axes.end(),
                                  [&](const Setting& axis) { return axis.name == name; });
  return found == axes.end() ? nullptr : &*found;
}

// Drawn lengths are of several sequences. --tokens has made the batch of each length.
void refuse_one_sequence(const SweepRequest& request, const std::vector<Setting>& axes,
                         const std::string& words) {
  const Setting* const batch = setting_of(axes, "batch");
  const bool is_alone = !batch || names_it(batch->values, "1");
  ATTN_CHECK(!is_alone || request.tokens == 0,
             "--packed {} draws the lengths of several sequences, and --tokens {} is one sequence "
             "of length {}; leave this length out, or give more tokens",
             words, request.tokens, request.tokens);
  ATTN_CHECK(!is_alone,
             "--packed {} draws the lengths of several sequences, and the batch is 1; give their "
             "number, such as --batch 8",
             words);
}

void refuse_what_lists_decide(const SweepRequest& request, const std::string& words) {
  ATTN_CHECK(request.tokens == 0, "--tokens {} does not apply to packed {}: the list has its own",
             request.tokens, words);
  for (const char* axis : kDecidedByList)
    if (const auto given = request.axes.find(axis); given != request.axes.end())
      throw_error(
          fmt::format("axis {}={} does not apply to packed {}: the list says how many "
                      "sequences of which length there are",
                      axis, given->second, words));
}

}  // namespace

bool is_decided_by_list(const Axes& axes, const std::string& name) {
  return axes.packed && is_list_of_lengths(*axes.packed) && names_it(kDecidedByList, name);
}

void settle_packings(const SweepRequest& request, std::vector<Setting>& axes) {
  const auto packed = std::find_if(axes.begin(), axes.end(),
                                   [](const Setting& axis) { return axis.name == "packed"; });
  if (packed == axes.end()) return;
  for (std::string& word : packed->values) word = packed_word(word);
  const std::vector<std::string> values = packed->values;
  const std::string words = join(values);
  ATTN_CHECK(!setting_of(axes, "workload"),
             "--packed {} and --workload are both given; leave out one: the sequences of a "
             "workload are never padded",
             words);
  ATTN_CHECK(!request.breakdown, "--breakdown is of one pass, and --packed {} times two", words);
  if (std::all_of(values.begin(), values.end(), is_list_of_lengths)) {
    refuse_what_lists_decide(request, words);
    std::erase_if(axes, [](const Setting& axis) { return names_it(kDecidedByList, axis.name); });
    return;
  }
  const auto list = std::find_if(values.begin(), values.end(), is_list_of_lengths);
  ATTN_CHECK(list == values.end(),
             "--packed {}: the list {} has lengths of its own, and uniform and lognormal take "
             "--batch and --length; run lists apart",
             words, list == values.end() ? "" : *list);
  refuse_one_sequence(request, axes, words);
}

void decide_by_packing(Axes& axes) {
  if (!axes.packed || !is_list_of_lengths(*axes.packed)) return;
  const std::vector<int64_t> lengths = packed_lengths(*axes.packed, 0, 0, 0);
  axes.length = *std::max_element(lengths.begin(), lengths.end());
  axes.batch = std::ssize(lengths);
}

}  // namespace attn
