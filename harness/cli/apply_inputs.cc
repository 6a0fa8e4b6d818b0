// Reads .npy files and checks shapes and numbers; see apply_inputs.h. A pass over each array.
#include "harness/cli/apply_inputs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/base/check.h"
#include "harness/cli/terminal.h"

namespace attn::cli {
namespace {

Array read_floats(const std::string& option, const std::string& path) {
  Array array = read_npy(path);
  ATTN_CHECK(array.is_float(), "--{} {}: type '{}'; expected float32 ('<f4') or float64 ('<f8')",
             option, path, array.type);
  return array;
}

// Whether value `i` of an array [batch, heads, len, width] or [batch, len, width] stands at or
// behind the length of its batch entry. Shapes that do not fit are refused elsewhere.
bool is_padding(const Array& array, size_t i, const std::vector<int64_t>& kv_lengths) {
  const std::vector<int64_t>& s = array.shape;
  if (s.size() < 3 || s.size() > 4 || std::ssize(kv_lengths) != s[0]) return false;
  const int64_t heads = s.size() == 4 ? s[1] : 1, len = s[s.size() - 2];
  const auto at = static_cast<int64_t>(i) / s.back();  // in [batch, heads, len]
  return at % len >= kv_lengths[static_cast<size_t>(at / len / heads)];
}

void require_finite_values(const std::string& option, const std::string& path, const Array& array,
                           const std::vector<int64_t>& kv_lengths) {
  for (size_t i = 0; i < array.values.size(); i++)
    ATTN_CHECK(std::isfinite(array.values[i]) || is_padding(array, i, kv_lengths),
               "--{} {}: value {} at flat index {}; expected finite numbers{}", option, path,
               array.values[i], i, kv_lengths.empty() ? "" : " before the padding");
}

// Floats of `rank` dimensions, as `expected` names them.
Array read_array(const Arguments& arguments, const std::string& option, size_t rank,
                 const char* expected) {
  ATTN_CHECK(arguments.has(option), "apply needs --{} FILE.npy", option);
  Array array = read_floats(option, arguments.get(option));
  ATTN_CHECK(array.shape.size() == rank, "--{} {}: shape {}; expected {}", option,
             arguments.get(option), array.shape_text(), expected);
  for (const int64_t dim : array.shape)
    ATTN_CHECK(dim >= 1, "--{} {}: shape {} has an empty dimension", option, arguments.get(option),
               array.shape_text());
  return array;
}

// Padding of keys and values is never read; that of queries makes rows of the output.
void clear_padding(Array& array) {
  for (double& value : array.values)
    if (!std::isfinite(value)) value = 0;
}

// A layer multiplies rows of padding with its projections, whatever they hold.
void clear_padded_rows(Array& x, const std::vector<int64_t>& lengths) {
  const int64_t len = x.shape[1], width = x.shape[2];
  for (size_t b = 0; b < lengths.size(); ++b) {
    const auto first = x.values.begin() + static_cast<int64_t>(b) * len * width;
    std::fill(first + lengths[b] * width, first + len * width, 0.0);
  }
}

std::vector<int64_t> read_lengths(const Arguments& arguments, int64_t batch, int64_t kv_len) {
  if (!arguments.has("kv-lengths")) return {};
  const std::string path = arguments.get("kv-lengths");
  const Array array = read_npy(path);
  ATTN_CHECK(!array.is_float(), "--kv-lengths {}: type '{}'; expected int32 or int64", path,
             array.type);
  ATTN_CHECK(array.shape.size() == 1 && array.shape[0] == batch,
             "--kv-lengths {}: shape {}; expected [{}], one a batch entry", path,
             array.shape_text(), batch);
  std::vector<int64_t> lengths;
  for (const double value : array.values) {
    ATTN_CHECK(value >= 0 && value <= static_cast<double>(kv_len),
               "--kv-lengths {}: length {} is not in 0..{}", path, value, kv_len);
    lengths.push_back(static_cast<int64_t>(value));
  }
  return lengths;
}

void require_shared_heads(const Array& q, const Array& k) {
  require_same(q, "q", k, "k", {0, 3});
  ATTN_CHECK(q.shape[1] % k.shape[1] == 0,
             "--q is {} but --k is {}: the heads of queries must be a multiple of those of keys",
             q.shape_text(), k.shape_text());
}

// Nothing, where the variant does not read it and it is not given.
std::optional<Array> read_if_needed(const Arguments& arguments, const std::string& option,
                                    bool is_read) {
  if (!is_read && !arguments.has(option)) return std::nullopt;
  return read_attention_array(arguments, option);
}

Array zeros_like(const Array& v) {
  return {.shape = v.shape, .values = std::vector<double>(v.values.size()), .type = v.type};
}

}  // namespace

Array read_attention_array(const Arguments& arguments, const std::string& option) {
  return read_array(arguments, option, 4, "[batch, heads, len, head_dim]");
}

Array read_rows_array(const Arguments& arguments, const std::string& option) {
  return read_array(arguments, option, 3, "[batch, len, width]");
}

void require_runnable(const VariantInfo& info, const Params& params, const AttentionShape& shape) {
  if (const auto reason = info.why_not(shape, params))
    throw_error(fmt::format("{} cannot run here: {}{}", info.name, *reason,
                            info.lacks_causal(shape) ? "; add --causal" : ""));
}

void require_same(const Array& a, const char* a_name, const Array& b, const char* b_name,
                  const std::vector<size_t>& dims) {
  bool same = a.shape.size() == b.shape.size();
  for (const size_t i : dims) same = same && a.shape[i] == b.shape[i];
  ATTN_CHECK(same, "--{} is {} but --{} is {}: they must agree in {}", a_name, a.shape_text(),
             b_name, b.shape_text(),
             dims.size() == a.shape.size() ? "every dimension"
             : dims.size() == 3            ? "batch, heads and head_dim"
                                           : "batch and head_dim");
  ATTN_CHECK(a.type == b.type, "--{} is '{}' but --{} is '{}': one type for all arrays", a_name,
             a.type, b_name, b.type);
}

ApplyInputs read_inputs(const Arguments& arguments, const VariantInfo::Reads& read) {
  ApplyInputs in;
  const std::optional<Array> q = read_if_needed(arguments, "q", read.queries),
                             k = read_if_needed(arguments, "k", read.keys);
  in.v = read_attention_array(arguments, "v");
  in.q = q.value_or(zeros_like(in.v));
  in.k = k.value_or(zeros_like(in.v));
  if (arguments.has("prompt"))
    require_shared_heads(in.q, in.k);
  else
    require_same(in.q, "q", in.k, "k", {0, 1, 3});
  require_same(in.k, "k", in.v, "v", {0, 1, 2, 3});
  in.kv_lengths = read_lengths(arguments, in.k.shape[0], in.k.shape[2]);
  const bool of_one_sequence = in.q.shape[2] == in.k.shape[2];
  const auto q_lengths = of_one_sequence ? in.kv_lengths : std::vector<int64_t>();
  if (read.queries) require_finite_values("q", arguments.get("q"), in.q, q_lengths);
  if (read.keys) require_finite_values("k", arguments.get("k"), in.k, in.kv_lengths);
  require_finite_values("v", arguments.get("v"), in.v, in.kv_lengths);
  clear_padding(in.q);
  return in;
}

void require_outputs(const Arguments& arguments, std::initializer_list<const char*> options,
                     const std::map<std::string, std::string>& named) {
  namespace fs = std::filesystem;
  std::map<fs::path, std::string> written;  // files, and the options that name them
  const auto add = [&](const std::string& option, const std::string& path) {
    require_writable(path);
    if (fs::exists(path) && !fs::is_regular_file(path)) return;  // /dev/null
    const auto [first, is_new] = written.try_emplace(fs::absolute(path).lexically_normal(), option);
    ATTN_CHECK(is_new, "{} {}: {} writes that file too; name another", option, path, first->second);
  };
  for (const char* const option : options)
    if (arguments.has(option)) add(fmt::format("--{}", option), arguments.get(option));
  for (const auto& [name, path] : named) add(fmt::format("--grad-input {}", name), path);
}

std::optional<int64_t> read_prompt(const Arguments& arguments, const ApplyInputs& in) {
  ATTN_CHECK(arguments.has("prompt") || !arguments.has("seen"),
             "--seen tells what the steps of decoding see; add --prompt N");
  if (!arguments.has("prompt")) return std::nullopt;
  for (const char* const option : {"grad-out", "grad-q", "grad-k", "grad-v", "grad-input"})
    ATTN_CHECK(!arguments.has(option), "--{}: decoding has no gradients; drop it, or --prompt",
               option);
  ATTN_CHECK(!arguments.has("kv-lengths"),
             "--kv-lengths: sequences are decoded at one length; drop it, or --prompt");
  const int64_t len = in.k.shape[2];
  ATTN_CHECK(in.q.shape[2] == len,
             "--q is {} but --k is {}: with --prompt each position is a query and a key",
             in.q.shape_text(), in.k.shape_text());
  return arguments.integer("prompt", 0, 0, len - 1);
}

LayerInputs read_layer_inputs(const Arguments& arguments) {
  LayerInputs in{.x = read_rows_array(arguments, "x"), .kv_lengths = {}};
  in.kv_lengths = read_lengths(arguments, in.x.shape[0], in.x.shape[1]);
  require_finite_values("x", arguments.get("x"), in.x, in.kv_lengths);
  clear_padded_rows(in.x, in.kv_lengths);
  return in;
}

std::map<std::string, std::string> named_files(const Arguments& arguments,
                                               const std::string& option) {
  std::map<std::string, std::string> files;
  for (const std::string& text : arguments.all(option)) {
    const size_t equals = text.find('=');
    ATTN_CHECK(equals != std::string::npos && equals > 0,
               "--{} {} is not valid; expected NAME=FILE.npy", option, text);
    files[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return files;
}

std::map<std::string, attn_apply::Values> read_named(const Arguments& arguments,
                                                     const std::string& option,
                                                     const std::vector<int64_t>& kv_lengths) {
  std::map<std::string, attn_apply::Values> arrays;
  for (const auto& [name, path] : named_files(arguments, option)) {
    Array array = read_floats(option, path);
    require_finite_values(option, path, array, kv_lengths);
    arrays[name] = {array.shape, std::move(array.values)};
  }
  return arrays;
}

void require_finite(const std::string& option, const std::string& path, const Array& array) {
  require_finite_values(option, path, array, {});
}

void require_finite_result(const std::string& option, const std::vector<double>& values,
                           const std::string& type) {
  for (size_t i = 0; i < values.size(); i++)
    ATTN_CHECK(std::isfinite(values[i]),
               "the result for --{} is {} at flat index {}: the inputs are too large for '{}'",
               option, values[i], i, type);
}

}  // namespace attn::cli
