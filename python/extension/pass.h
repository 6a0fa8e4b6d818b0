// One forward pass of a variant of the catalogue over arrays of Python, and its backward pass.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "python/extension/arrays.h"

namespace attn_python {

struct PassRequest {
  std::string variant;
  ParamValues params;
  Array q, k, v;  // [batch, heads, len, head_dim]; read where they are
  bool causal = false;
  std::vector<int64_t> kv_lengths;       // [batch], or empty
  std::map<std::string, Array> weights;  // replace those of the same name; copied
  uint64_t seed = 0;                     // of the other weights and of random features
  int threads = 1;
  bool gradients = false;  // keep what backward() needs
};

struct PassGradients {
  Array q, k, v;                         // zeros where the output does not depend on an input
  std::map<std::string, Array> weights;  // of the learned ones among the given
};

class Pass {
 public:
  virtual ~Pass() = default;
  virtual Array output() const = 0;  // [batch, heads, q_len, head_dim]
  // Of ⟨grad_output, output⟩. Refused on a second call, or without PassRequest::gradients.
  virtual PassGradients backward(const Array& grad_output) = 0;
};

// Refused: what the variant does not take, in one line. NoMemory.
std::unique_ptr<Pass> pass_in_float(const PassRequest& request);
std::unique_ptr<Pass> pass_in_double(const PassRequest& request);
// q, k, v and the output are bfloat16, weights float. Without a backward pass.
std::unique_ptr<Pass> pass_in_bfloat16(const PassRequest& request);

struct NamedArray {
  std::string name;
  Array array;
  bool learned = true;
};
// The weights of a variant for this configuration, in float, as the seed draws them.
std::vector<NamedArray> initial_weights(const std::string& variant, const ParamValues& params,
                                        int64_t heads, int64_t head_dim, int64_t max_len,
                                        bool causal, uint64_t seed);

}  // namespace attn_python
