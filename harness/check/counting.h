// Counts the cost of a variant at given shapes and parameters. Formulas are fitted to these counts.
// Internal to derive.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "variants/api/variant_info.h"

namespace attn {

struct Point {
  AttentionShape shape;
  std::map<std::string, ParamValue> given;
};

struct Counted {
  double flops = 0, peak = 0, state = 0;  // peak and state in numbers of sizeof(real) bytes
};

// Sets the number of threads to one during its lifetime, because each thread has a workspace.
class Counting {
 public:
  Counting(const VariantInfo& info, std::map<std::string, ParamValue> given)
      : info_(info), given_(std::move(given)) {}

  const VariantInfo& info() const { return info_; }
  const std::map<std::string, ParamValue>& given() const { return given_; }
  std::optional<std::string> why_not(const Point& at) const;
  bool can_run(const Point& at) const { return !why_not(at); }
  Counted count(const Point& at) const;

  // The shape in the middle of the grid, with the given parameters.
  Point middle(bool causal) const;
  // Values near the given value of a parameter, within its range, that can run at middle().
  std::vector<int64_t> levels(const std::string& name) const;
  // The integer parameters that the cost depends on, at most kMostParams, the most influential
  // first.
  static constexpr size_t kMostParams = 2;
  std::vector<std::string> params() const;

 private:
  double change(const std::string& name) const;

  const VariantInfo& info_;
  std::map<std::string, ParamValue> given_;
  const ScopedThreads one_thread_{1};
};

}  // namespace attn
