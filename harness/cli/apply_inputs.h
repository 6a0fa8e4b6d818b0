// The arrays that `apply` reads: queries, keys, values, lengths and those that are given by name.
// Error of one line names the option, the file and the value that does not fit.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "harness/cli/apply_run.h"
#include "harness/cli/npy.h"
#include "harness/cli/options.h"
#include "variants/api/variant_info.h"

namespace attn::cli {

// What `answer` returns; its Refusal as the Error that main() knows.
template <class Answer>
auto answered(const Answer& answer) {
  try {
    return answer();
  } catch (const attn_apply::Refusal& refusal) {
    throw_error(refusal.what());
  }
}

struct ApplyInputs {
  Array q, k, v;
  std::vector<int64_t> kv_lengths;  // a batch entry; empty: no padding
};

// What the variant does not read may be left out: zeros of the shape of v stand for it. Numbers
// must be finite but where nobody reads them: in padding, which for queries of self-attention is
// at the same positions, and in what the variant does not read.
// To decode, keys and values may have fewer heads, which the query heads share.
ApplyInputs read_inputs(const Arguments& arguments, const VariantInfo::Reads& read);
// Error where a file of these options, or of `named` ones (--grad-input), cannot be written or is
// one of two that have the same name.
void require_outputs(const Arguments& arguments, std::initializer_list<const char*> options,
                     const std::map<std::string, std::string>& named = {});
// How many positions are a prompt; nullopt: nothing is decoded.
std::optional<int64_t> read_prompt(const Arguments& arguments, const ApplyInputs& in);

// [batch, heads, len, head_dim], of floats.
Array read_attention_array(const Arguments& arguments, const std::string& option);
// [batch, len, width], of floats.
Array read_rows_array(const Arguments& arguments, const std::string& option);

struct LayerInputs {
  Array x;                          // [batch, len, width]
  std::vector<int64_t> kv_lengths;  // a batch entry; empty: no padding
};
// Of a layer. Padding may hold anything; zeros stand for what is not finite there.
LayerInputs read_layer_inputs(const Arguments& arguments);

// Error where the variant cannot run that shape.
void require_runnable(const VariantInfo& info, const Params& params, const AttentionShape& shape);

void require_same(const Array& a, const char* a_name, const Array& b, const char* b_name,
                  const std::vector<size_t>& dims);

// The files of an option that is given as NAME=FILE.npy, by name.
std::map<std::string, std::string> named_files(const Arguments& arguments,
                                               const std::string& option);

// Their arrays. Padding may hold anything; no lengths: there is none.
std::map<std::string, attn_apply::Values> read_named(const Arguments& arguments,
                                                     const std::string& option,
                                                     const std::vector<int64_t>& kv_lengths = {});

// Error unless all numbers of the array are finite.
void require_finite(const std::string& option, const std::string& path, const Array& array);
// Error unless all numbers of a result in that type are.
void require_finite_result(const std::string& option, const std::vector<double>& values,
                           const std::string& type);

}  // namespace attn::cli
