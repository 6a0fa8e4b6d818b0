// Steps of all heads; see scan_decoder.h.
#include "variants/scans/scan_decoder.h"

#include <utility>

#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/rows.h"
#include "core/tensor/tensor.h"

namespace attn {
namespace {

class ScanDecoder final : public Decoder {
 public:
  ScanDecoder(const Shape& position, int64_t capacity, ScanRule rule)
      : Decoder(position, capacity, rule.gate_widths),
        heads_(position[1]),
        states_(Tensor::zeros({heads(), rule.state_reals})),
        rule_(std::move(rule)),
        work_(static_cast<size_t>(heads() * padded_reals(head_dim())) * sizeof(real),
              Purpose::workspace) {}

 private:
  void steps(const Tensor* v, const real* row, int64_t len, real* out) {
    const int64_t dim = head_dim();
    over_range(heads(), len * rule_.state_reals, [&](int64_t begin, int64_t end) {
      Tally done;
      for (int64_t head = begin; head < end; ++head)
        for (int64_t i = 0; i < len; ++i) {
          ScanStep step{.head = head % heads_,
                        .x = (v ? v->data() : row) + (head * len + i) * dim,
                        .state = states_.data() + head * rule_.state_reals,
                        .work = static_cast<real*>(work_.data()) + head * padded_reals(dim),
                        .out = out ? out + head * dim : nullptr};
          for (size_t g = 0; g < gates().size(); ++g)
            step.gates[g] = gates()[g].data() + (head * len + i) * gates()[g].dim(3);
          rule_.step(step);
          done.other_flops(rule_.flops * rule_.state_reals);
          done.moved<real>(2 * rule_.state_reals);
        }
    });
  }

  void do_extend(const Tensor&, const Tensor& v) override { steps(&v, nullptr, v.dim(2), nullptr); }
  void do_step(const real*, const real*, const real* v, real* out) override {
    steps(nullptr, v, 1, out);
  }
  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * states_.size();
  }
  double do_step_flops() const override {
    return static_cast<double>(rule_.flops * states_.size());
  }
  double do_step_bytes() const override { return 2 * static_cast<double>(do_state_bytes()); }

  int64_t heads_;  // of one sequence
  Tensor states_;  // [heads, state_reals]
  ScanRule rule_;
  Block work_;
};

}  // namespace

std::unique_ptr<Decoder> scan_decoder(const Shape& position, int64_t capacity, ScanRule rule) {
  if (position[2] > 1) return nullptr;
  return std::make_unique<ScanDecoder>(position, capacity, std::move(rule));
}

}  // namespace attn
