// Caches that forget as in a textbook, right and with one fault at a time: what the check `decode`
// must catch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/counters.h"
#include "harness/check/contract.h"
#include "variants/api/forgetting.h"
#include "variants/catalog.h"
#include "variants/reference/eviction.h"
#include "variants/softmax/softmax.h"

namespace attn::planted_eviction_test {
namespace {

enum class Fault {
  none,
  newest_goes,  // in place of the oldest
  one_more,     // than the budget is kept
  one_less,
  not_before_full,  // forgets one position before the budget is reached
  grows,            // holds something of every step, whatever it forgets
  never_back,       // a step that is taken back stays
  parts_of_prompt,  // each call of extend() is taken for a prompt
  no_sinks,         // the first positions go too
  three_sinks,
  ghosts,               // weights are those of a softmax over forgotten keys, too
  last_weights,         // those of the last query alone are ranked, and not their sum
  no_recent_half,       // the last positions may go
  prompt_not_weighed,   // the queries of a prompt add nothing
  first_head_of_group,  // of the query heads that share keys, the first one's weights alone
  largest_weight_goes,  // in place of the smallest
  own_choice,           // of each head, in place of one for the sequence
  largest_norms_stay,
  norm_of_value  // in place of the key's
};

struct Held {
  int64_t position = 0;
  std::vector<double> key, value;
  double sum = 0, last = 0;
};

class PlantedDecoder final : public Decoder, public WeighsPrompts {
 public:
  PlantedDecoder(const Shape& position, int64_t capacity, std::string method, int64_t budget,
                 Fault fault)
      : Decoder(position, capacity),
        method_(std::move(method)),
        budget_(budget + (fault == Fault::one_more) - (fault == Fault::one_less)),
        fault_(fault),
        kv_heads_(position[1]),
        held_(static_cast<size_t>(heads())),
        gone_(held_.size()) {}

  bool weighs_prompts() const override { return method_ == "h2o" || method_ == "tova"; }
  void take_queries(const Tensor& q) override { queries_ = q; }

 private:
  std::vector<Held>& of(int64_t head) { return held_[static_cast<size_t>(head)]; }

  void put(int64_t head, int64_t position, const real* k, const real* v) {
    of(head).push_back({position, {k, k + head_dim()}, {v, v + head_dim()}});
  }
  // The weights of a query over what is held, and with ghosts over what is gone, which are dropped.
  std::vector<double> weights(int64_t head, const real* q, size_t count) {
    std::vector<double> w;
    const auto add = [&](const Held& one) {
      double logit = 0;
      for (size_t c = 0; c < one.key.size(); ++c) logit += static_cast<double>(q[c]) * one.key[c];
      w.push_back(std::exp(logit / std::sqrt(static_cast<double>(head_dim()))));
    };
    for (size_t s = 0; s < count; ++s) add(of(head)[s]);
    if (fault_ == Fault::ghosts)
      for (const Held& one : gone_[static_cast<size_t>(head)]) add(one);
    double total = 0;
    for (const double x : w) total += x;
    for (double& x : w) x /= total;
    return w;
  }
  void do_extend(const Tensor& k, const Tensor& v) override {
    settle();
    if (fault_ == Fault::parts_of_prompt) end_prompt();
    const int64_t len = k.dim(2), dim = head_dim();
    for (int64_t head = 0; head < heads(); ++head)
      for (int64_t i = 0; i < len; ++i) {
        put(head, length() + i, k.data() + (head * len + i) * dim,
            v.data() + (head * len + i) * dim);
        const bool is_last = i + 1 == len;
        if (!weighs_prompts() || fault_ == Fault::prompt_not_weighed) continue;
        for (Held& one : of(head)) one.last = 0;
        if (method_ == "tova" && !is_last) continue;
        for (int64_t r = 0; r < group(); ++r)
          add_last(head, queries_.data() + ((head * group() + r) * len + i) * dim, r);
        for (Held& one : of(head)) one.sum += one.last;
      }
    is_prompt_ = true;
    seen_ = length() + len;
  }
  void add_last(int64_t head, const real* q, int64_t r) {
    if (fault_ == Fault::first_head_of_group && r > 0) return;
    const std::vector<double> w = weights(head, q, of(head).size());
    for (size_t s = 0; s < of(head).size(); ++s) of(head)[s].last += w[s];
  }
  void settle() {
    if (!is_stepped_) return;
    is_stepped_ = false;
    if (length() < seen_ && fault_ != Fault::never_back) {
      for (auto& head : held_) head.pop_back();
      return;
    }
    for (auto& head : held_)
      for (Held& one : head) one.sum += one.last;
    forget(length());
  }
  void end_prompt() {
    if (is_prompt_) forget(length());
    is_prompt_ = false;
  }
  double rank(int64_t head, const Held& one, int64_t so_far) {
    const auto position = static_cast<double>(one.position);
    if (method_ == "sinks") {
      const int64_t first = fault_ == Fault::no_sinks ? 0 : fault_ == Fault::three_sinks ? 3 : 4;
      return one.position < first ? 1e9 - position : position;
    }
    if (method_ == "h2o") {
      const bool is_recent = one.position >= so_far - budget_ / 2;
      if (is_recent && fault_ != Fault::no_recent_half) return 1e9 + position;
      return fault_ == Fault::last_weights ? one.last : one.sum;
    }
    if (method_ == "tova") {
      double sum = 0;
      const int64_t first = head / kv_heads_ * kv_heads_;
      for (int64_t h = first; h < first + kv_heads_; ++h)
        for (const Held& other : of(h))
          if (other.position == one.position && (h == head || fault_ != Fault::own_choice))
            sum += other.last;
      return fault_ == Fault::largest_weight_goes ? -sum : sum;
    }
    if (method_ == "norm") {
      double norm = 0;
      for (const double x : fault_ == Fault::norm_of_value ? one.value : one.key) norm += x * x;
      return fault_ == Fault::largest_norms_stay ? norm : -norm;
    }
    return fault_ == Fault::newest_goes ? -position : position;
  }
  void forget(int64_t so_far) {
    const size_t budget =
        static_cast<size_t>(budget_) - (fault_ == Fault::not_before_full && so_far == budget_);
    std::vector<std::vector<std::pair<double, int64_t>>> ranked(held_.size());
    for (int64_t head = 0; head < heads(); ++head)
      for (const Held& one : of(head))
        ranked[static_cast<size_t>(head)].emplace_back(rank(head, one, so_far), one.position);
    for (int64_t head = 0; head < heads(); ++head) {
      auto& order = ranked[static_cast<size_t>(head)];
      std::sort(order.rbegin(), order.rend());
      if (order.size() <= budget) continue;
      for (size_t i = budget; i < order.size(); ++i) {
        const auto it = std::find_if(of(head).begin(), of(head).end(), [&](const Held& one) {
          return one.position == order[i].second;
        });
        gone_[static_cast<size_t>(head)].push_back(*it);
        of(head).erase(it);
      }
    }
  }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    settle();
    end_prompt();
    const int64_t dim = head_dim();
    for (int64_t head = 0; head < heads(); ++head) {
      put(head, length(), k + head * dim, v + head * dim);
      for (Held& one : of(head)) one.last = 0;
      for (int64_t r = 0; r < group(); ++r) {
        const real* const query = q + (head * group() + r) * dim;
        const Fault fault = std::exchange(fault_, Fault::none);  // answers are right
        const std::vector<double> w = weights(head, query, of(head).size());
        fault_ = fault;
        for (int64_t c = 0; c < dim; ++c) {
          double sum = 0;
          for (size_t s = 0; s < w.size(); ++s)
            sum += w[s] * of(head)[s].value[static_cast<size_t>(c)];
          out[(head * group() + r) * dim + c] = static_cast<real>(sum);
        }
        add_last(head, query, r);
      }
    }
    if (fault_ == Fault::grows) grown_.push_back(Tensor({heads()}));
    is_stepped_ = true;
    seen_ = length() + 1;
    count_flops(flops_of(std::ssize(of(0))));
    count_bytes(do_step_bytes());
  }
  double flops_of(int64_t seen) const {
    return 4 * static_cast<double>(heads() * group() * head_dim() * seen);
  }
  double do_step_flops() const override {
    const int64_t held = std::ssize(held_[0]) - (is_stepped_ && length() < seen_ ? 1 : 0);
    return flops_of(held + 1);
  }
  double do_step_bytes() const override {
    return 2 * static_cast<double>(heads() * head_dim() * budget_) * sizeof(real);
  }
  int64_t do_state_bytes() const override {
    return 2 * heads() * head_dim() * budget_ * int64_t{sizeof(real)};
  }

  std::string method_;
  int64_t budget_;
  Fault fault_;
  int64_t kv_heads_;
  std::vector<std::vector<Held>> held_, gone_;
  Tensor queries_;
  bool is_stepped_ = false, is_prompt_ = false;
  int64_t seen_ = 0;
  std::vector<Tensor> grown_;
};

class Planted final : public Attention, public Forgetting {
 public:
  static constexpr int64_t kBudget = 12;

  Planted(const AttentionConfig& config, std::string method, Fault fault)
      : Attention(config), method_(std::move(method)), fault_(fault) {}
  std::optional<int64_t> forgets_from() const override { return kBudget + 1; }
  oracle::Array step_answers(const ReferenceInputs& x, const DecodeSteps& steps) const override {
    return oracle::evicted_attention(x.q, x.k, x.v, steps.is_step, steps.kv_heads,
                                     {.method = method_, .budget = kBudget, .draw = {}}, x.rows);
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, {.causal = mask.causal, .kv_lengths = mask.kv_lengths});
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return std::make_unique<PlantedDecoder>(position, capacity, method_, kBudget, fault_);
  }

  std::string method_;
  Fault fault_;
};

attn_check::Result checked(const std::string& method, Fault fault) {
  const VariantInfo info{.name = "planted",
                         .family = "exact",
                         .traits = {.causal = true, .decode = true},
                         .make = [=](const AttentionConfig& c) {
                           return std::make_unique<Planted>(c, method, fault);
                         }};
  // At one shape, with two query heads for each head of keys.
  const AttentionShape shape{.heads = 4, .head_dim = 8, .causal = true};
  const auto results = check_variant_at(info, {}, shape, 1, 2);
  EXPECT_EQ(results.size(), 1U) << "the check of decoding alone";
  return results.at(0);
}

TEST(PlantedEviction, TheTextbookPasses) {
  for (const char* const method : {"recent", "sinks", "h2o", "tova", "norm"}) {
    const auto result = checked(method, Fault::none);
    EXPECT_EQ(result.outcome, attn_check::Outcome::passed) << method << ": " << result.detail;
  }
}

TEST(PlantedEviction, EachFaultIsCaught) {
  using enum Fault;
  const std::vector<std::pair<const char*, std::vector<Fault>>> faults = {
      {"recent", {newest_goes, one_more, one_less, not_before_full, grows, never_back}},
      {"sinks", {no_sinks, three_sinks}},
      {"h2o",
       {ghosts, last_weights, no_recent_half, prompt_not_weighed, first_head_of_group,
        parts_of_prompt}},
      {"tova", {largest_weight_goes, own_choice}},
      {"norm", {largest_norms_stay, norm_of_value}}};
  for (const auto& [method, some] : faults)
    for (const Fault fault : some) {
      const auto result = checked(method, fault);
      EXPECT_EQ(result.outcome, attn_check::Outcome::failed)
          << method << ", fault " << static_cast<int>(fault) << ": " << result.detail;
      EXPECT_EQ(result.detail.find("threw"), std::string::npos) << result.detail;
    }
}

// The decoders of exact attention, by size and by share, while decoding and at the end of a prompt.
TEST(Eviction, EveryMethodKeepsWhatTheReferenceKeeps) {
  const VariantInfo& full = find_variant("full");
  const AttentionShape shape{.heads = 4, .head_dim = 8, .causal = true};
  for (const auto& each : names_of(Evict{}))
    for (const double budget : {8.0, 33.0, 0.3, 0.0625})
      for (const char* const when : {"always", "prompt"}) {
        std::map<std::string, ParamValue> given = {
            {"evict", std::string(each.name)}, {"budget", budget}, {"when", std::string(when)}};
        if (effective(full.params, given) != given && std::string(when) == "prompt") continue;
        const auto result =
            check_variant_at(full, effective(full.params, given), shape, 1, 2).at(0);
        EXPECT_EQ(result.outcome, attn_check::Outcome::passed)
            << result.subject << ": " << result.detail;
      }
}

}  // namespace
}  // namespace attn::planted_eviction_test
