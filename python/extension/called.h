// A function of another language as an attention variant, under the contract checks: forward calls
// the function, backward calls what it returned for gradients. No cost is declared or counted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/check/result.h"
#include "python/extension/arrays.h"
#include "python/extension/pass.h"

namespace attn_python {

// What a function promises: the traits of the same names in variants/api/traits.h.
struct Promises {
  std::string name;
  bool exact = false, causal = false, cross = false, padding = false, convex = false,
       permutable = false, rowwise = false, random = false, fixed_length = false;
  bool reads_queries = true, reads_keys = true;
  int64_t multiple_of = 1;  // lengths that are not are not tried
};

// What the function is made for.
struct Made {
  int64_t heads = 1, head_dim = 1, max_len = 1;
  bool causal = false;
  uint64_t seed = 0;
  bool in_double = false;
  ParamValues params{};  // of a variant of the catalogue
};

struct CallInputs {
  Array q, k, v;  // [batch, heads, len, head_dim]; of the function while it runs, not to be changed
  bool causal = false;
  std::vector<int64_t> kv_lengths;  // [batch], or empty
  std::vector<Array> weights;       // the values now, in the order of Callee::weights()
  bool gradients = false;
};

struct CallOutput {
  Array output;  // [batch, heads, q_len, head_dim]; copied
  // From the gradient of the output to those of q, k, v and of each weight; an array that is not
  // given has none. Empty: the function has no gradients.
  std::function<std::vector<Array>(const Array& grad_output)> backward;
};

// The function, made for one configuration.
class Callee {
 public:
  virtual ~Callee() = default;
  virtual std::vector<NamedArray> weights() const = 0;  // as they were made
  virtual CallOutput call(const CallInputs& inputs) const = 0;
};
using MakeCallee = std::function<std::shared_ptr<Callee>(const Made& made)>;

// The names of the checks that apply to the promises: all, and those that double precision is for.
std::vector<std::string> checks_of(const Promises& promises);
std::vector<std::string> double_checks_of(const Promises& promises);

// Runs the check of this name. An exception of the function makes the result a failed one.
attn_check::Result check_in_float(const Promises& promises, const MakeCallee& make,
                                  attn_check::Level level, const std::string& check);
attn_check::Result check_in_double(const Promises& promises, const MakeCallee& make,
                                   attn_check::Level level, const std::string& check);

}  // namespace attn_python
