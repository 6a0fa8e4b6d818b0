// One variant counted at one shape after the other, with one parameter or another: what formulas
// are fitted to. Internal to derive.cc.
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
  double flops = 0, peak = 0, state = 0;  // peak and state in numbers, of sizeof(real) bytes
};

// One thread while it lives: workspaces are one a thread.
class Counting {
 public:
  Counting(const VariantInfo& info, std::map<std::string, ParamValue> given)
      : info_(info), given_(std::move(given)) {
    set_threads(1);
  }
  ~Counting() { set_threads(threads_before_); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  const VariantInfo& info() const { return info_; }
  const std::map<std::string, ParamValue>& given() const { return given_; }
  std::optional<std::string> why_not(const Point& at) const;
  bool can_run(const Point& at) const { return !why_not(at); }
  Counted count(const Point& at) const;

  // A shape of the grid's middle, with the parameters as given.
  Point middle(bool causal) const;
  // Values of a parameter around the given one, in its range, that can run in the middle.
  std::vector<int64_t> levels(const std::string& name) const;
  // The whole-number parameters that the cost follows, at most kMostParams: those first whose
  // change changes most.
  static constexpr size_t kMostParams = 2;
  std::vector<std::string> params() const;

 private:
  double change(const std::string& name) const;

  const VariantInfo& info_;
  std::map<std::string, ParamValue> given_;
  int threads_before_ = threads();
};

}  // namespace attn
