// One variant, or a layer of it, on given arrays. Compiled in float and in double, so it is in a
// namespace of its own: float64 arrays are computed in double, float32 arrays in float, and the
// exact reference always in double.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace attn_apply {

struct Values {
  std::vector<int64_t> shape;
  std::vector<double> values;
};

struct Request {
  std::string variant;
  std::map<std::string, std::variant<int64_t, double, bool, std::string>> params;
  Values q, k, v;  // [batch, heads, len, head_dim]; k and v may have fewer heads, which are shared
  bool causal = false;
  // Decodes: so many positions are a prompt, appended at once, and each later one is a step.
  std::optional<int64_t> prompt;
  bool tells_seen = false;                // with a prompt: fills Output::seen
  std::vector<int64_t> kv_lengths;        // [batch], or empty
  std::map<std::string, Values> gates;    // by name, [batch, heads, kv_len, width]
  std::map<std::string, Values> weights;  // replaces those of the same name
  uint64_t seed = 0;
  Values grad_out;  // no values: no gradients
};

struct Output {
  std::vector<double> out, grad_q, grad_k, grad_v;
  std::map<std::string, std::vector<double>> grad_gates;
  // Ascending positions that each step saw: [steps][batch · heads].
  std::vector<std::vector<std::vector<int32_t>>> seen;
};

// A layer without its norm, residual and feed-forward: AttentionBlock::bare().
struct LayerRequest {
  std::string variant;
  std::map<std::string, std::variant<int64_t, double, bool, std::string>> params;
  Values x;  // [batch, len, width]
  int64_t heads = 1;
  bool causal = false;
  std::vector<int64_t> kv_lengths;        // [batch], or empty
  std::map<std::string, Values> weights;  // replaces those of the same name
  uint64_t seed = 0;
  Values grad_out;  // no values: no gradient
};

struct LayerOutput {
  std::vector<double> out, grad_x;
};

struct LayerWeight {
  std::string name;
  std::vector<int64_t> shape;
  bool learned;
};

// What does not fit the variant. The errors of the double build are a type of their own, which
// main() does not know; this one both builds share.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throw Refusal.
Output run_float(const Request& request);
Output run_double(const Request& request);
LayerOutput layer_float(const LayerRequest& request);
LayerOutput layer_double(const LayerRequest& request);
std::vector<LayerWeight> layer_weights(const LayerRequest& request);

}  // namespace attn_apply
