// A block in double, one row after the other, from the equations in variants/api/block.h, without
// the passes of the library; see paper_parts.h. The weights come in the order in which the block
// makes them.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.h"
#include "variants/block/paper_parts.h"
#include "variants/reference/mixers.h"
#include "variants/reference/units.h"

namespace attn {
namespace {

using oracle::Array;
using oracle::Index;

// Weights one after the other.
class Weights {
 public:
  explicit Weights(const std::vector<Array>& all) : all_(all) {}
  const Array& next() { return all_.at(at_++); }
  std::vector<Array> rest() const { return {all_.begin() + static_cast<int64_t>(at_), all_.end()}; }

 private:
  const std::vector<Array>& all_;
  size_t at_ = 0;
};

// f(number, channel) of every number of rows.
template <class F>
Array each(Array rows, const F& f) {
  for (size_t i = 0; i < rows.x.size(); ++i)
    rows.x[i] = f(rows.x[i], static_cast<Index>(i) % rows.dim);
  return rows;
}
double silu_of(double x, Index) { return oracle::silu(x); }

// f(number, other) of two arrays of one shape.
template <class F>
Array both(Array a, const Array& b, const F& f) {
  for (size_t i = 0; i < a.x.size(); ++i) a.x[i] = f(a.x[i], b.x[i]);
  return a;
}

Array product(const Array& rows, const Array& matrix) {
  Array out(rows.batch, 1, rows.len, matrix.dim);
  for (Index b = 0; b < rows.batch; ++b)
    for (Index t = 0; t < rows.len; ++t) {
      const std::vector<double> sums = oracle::times(rows.row(b, 0, t), matrix);
      std::copy(sums.begin(), sums.end(), out.line(b, 0, t));
    }
  return out;
}

Array plus(const Array& rows, const Array& bias) {
  return each(rows, [&](double x, Index c) { return x + bias.at(0, 0, 0, c); });
}

// Σ_j taps_j ⊙ x_{t-last+j}
Array convolved(const Array& rows, const Array& taps) {
  Array out(rows.batch, 1, rows.len, rows.dim);
  for (Index b = 0; b < rows.batch; ++b)
    for (Index t = 0; t < rows.len; ++t)
      for (Index j = 0; j < taps.len; ++j) {
        const Index at = t - (taps.len - 1) + j;
        if (at < 0) continue;
        for (Index c = 0; c < rows.dim; ++c)
          out.at(b, 0, t, c) += taps.at(0, 0, j, c) * rows.at(b, 0, at, c);
      }
  return out;
}

Array before_of(const Array& rows) {
  Array out(rows.batch, 1, rows.len, rows.dim);
  for (Index b = 0; b < rows.batch; ++b)
    for (Index t = 1; t < rows.len; ++t)
      for (Index c = 0; c < rows.dim; ++c) out.at(b, 0, t, c) = rows.at(b, 0, t - 1, c);
  return out;
}

// Each run of `group` numbers less its mean, where `centred`, over its root mean square.
Array normed(Array rows, Index group, bool centred, double epsilon) {
  for (size_t first = 0; first < rows.x.size(); first += static_cast<size_t>(group)) {
    double* const x = rows.x.data() + first;
    double mean = 0, squares = 0;
    for (Index c = 0; c < group; ++c) mean += x[c] / static_cast<double>(group);
    if (!centred) mean = 0;
    for (Index c = 0; c < group; ++c) squares += (x[c] - mean) * (x[c] - mean);
    const double size = std::sqrt(squares / static_cast<double>(group) + epsilon);
    for (Index c = 0; c < group; ++c) x[c] = (x[c] - mean) / size;
  }
  return rows;
}

class Walk {
 public:
  Walk(const VariantInfo& base, const ReferenceInputs& x)
      : base_(base),
        block_(base.block.value()),
        x_(x),
        w_(x.weights),
        heads_(x.config.heads * block_.expansion),
        dim_(x.config.head_dim),
        parts_(block_.value_parts) {
    rows_ = oracle::merged(x.v);
    for (Index b = 0; b < rows_.batch; ++b)
      for (Index t = x.valid(b); t < rows_.len; ++t)
        std::fill_n(rows_.line(b, 0, t), rows_.dim, 0.0);
    if (block_.token_shift) before_ = before_of(rows_);
    if (block_.shift_rank > 0) data_share_ = &w_.next();
  }

  // What the mixer reads, and what is handed on.
  void read() {
    AttentionConfig config = x_.config;
    config.heads = heads_;
    config.params = mixer_params(base_, x_.config.params);
    if (!block_.key_dim.empty()) config.key_dim = config.params.integer(block_.key_dim);
    const VariantInfo::Reads read = base_.read_by(config.params);
    const LayerBlock::Convolution& by = block_.convolution;
    const Index key_heads = block_.one_key_head ? 1 : heads_;
    in_ = {.config = config, .mask = x_.mask, .rows = x_.rows};
    if (read.queries)
      in_.q = of_keys(side(by.queries, block_.silu_queries, key_heads, false, true), key_heads);
    if (read.keys)
      in_.k = of_keys(side(by.keys, block_.silu_keys, key_heads, true, true), key_heads);
    values_ = block_.projects_values
                  ? side(by.values, block_.silu_values, heads_ * parts_, true, false)
                  : rows_;
    if (block_.value_residual) mix_values();
    in_.v = in_parts(values_);
    if (in_.q.x.empty()) in_.q = in_.v;
    if (in_.k.x.empty()) in_.k = in_.v;
  }

  Array handed_on() {
    read();
    return handed_;
  }

  Array answer() {
    read();
    gates_of(in_.config, values_, in_);
    const Array skip = block_.skip == LayerBlock::Skip::none ? Array() : w_.next();
    const Array* const bonus = block_.bonus ? &w_.next() : nullptr;
    const Array z = output_gate();
    const bool learns = block_.norm != LayerBlock::Norm::none && block_.norm_is_learned;
    const bool shifts =
        block_.norm == LayerBlock::Norm::layer || block_.norm == LayerBlock::Norm::layer_of_heads;
    const Array* const gain = learns ? &w_.next() : nullptr;
    const Array* const shift = learns && shifts ? &w_.next() : nullptr;
    const Array* const out = block_.projects_output ? &w_.next() : nullptr;
    const Array* const out_bias = block_.glu || block_.projection_biases ? &w_.next() : nullptr;
    in_.weights = w_.rest();
    in_.mask.kv_lengths.clear();
    for (const Index length : x_.mask.kv_lengths)
      in_.mask.kv_lengths.insert(in_.mask.kv_lengths.end(), static_cast<size_t>(parts_), length);
    Array y = from_parts(base_.reference(in_));
    if (!skip.x.empty())
      y = both(y,
               each(values_,
                    [&](double v, Index c) {
                      const Index of = c / (dim_ * parts_);
                      return v * skip.at(0, 0, 0, block_.skip == LayerBlock::Skip::head ? of : c);
                    }),
               std::plus<>());
    if (!block_.gate_before_norm) y = normalised(y, gain, shift);
    if (bonus) y = both(y, from_parts(bonus_of(in_, *bonus)), std::plus<>());
    if (!z.x.empty())
      y = both(y, z, [&](double a, double g) {
        if (block_.gate == LayerBlock::Gate::linear) return a * g;
        if (block_.gate == LayerBlock::Gate::gelu) return a * oracle::gelu(g);
        return a * (block_.gate == LayerBlock::Gate::silu ? oracle::silu(g) : oracle::logistic(g));
      });
    if (block_.gate_before_norm) y = normalised(y, gain, shift);
    if (block_.gelu) y = each(y, [](double a, Index) { return oracle::gelu(a); });
    if (out) y = product(y, *out);
    if (out_bias) y = plus(y, *out_bias);
    if (block_.glu) {
      Array halves(y.batch, 1, y.len, y.dim / 2);
      for (Index b = 0; b < y.batch; ++b)
        for (Index t = 0; t < y.len; ++t)
          for (Index c = 0; c < halves.dim; ++c)
            halves.at(b, 0, t, c) =
                y.at(b, 0, t, c) * oracle::logistic(y.at(b, 0, t, halves.dim + c));
      y = halves;
    }
    return oracle::split(y, x_.v.heads);
  }

 private:
  // x + share ⊙ (x_{t-1} - x), of a share for all positions or of each.
  Array lerp(const Array& rows, const Array& share) const {
    Array out = rows;
    for (Index b = 0; b < rows.batch; ++b)
      for (Index t = 0; t < rows.len; ++t)
        for (Index c = 0; c < rows.dim; ++c)
          out.at(b, 0, t, c) += share.at(share.batch > 1 ? b : 0, 0, share.len > 1 ? t : 0, c) *
                                (before_.at(b, 0, t, c) - rows.at(b, 0, t, c));
    return out;
  }
  // The shift of the next projection.
  Array mixed(const Array& rows) {
    if (!block_.token_shift) return rows;
    const Array& share = w_.next();
    if (block_.shift_rank == 0) return lerp(rows, share);
    const Array hidden = each(product(lerp(rows, *data_share_), w_.next()),
                              [](double a, Index) { return std::tanh(a); });
    Array all = plus(product(hidden, w_.next()), share);
    return lerp(rows, all);
  }

  // v + (v_1 - v) ⊙ σ(bias + (x_v·A)·B), or v where this is the first layer.
  void mix_values() {
    handed_ = x_.config.receives ? x_.received : values_;
    if (!x_.config.receives) return;
    const Array hidden = product(from_, w_.next());
    const Array raised = product(hidden, w_.next());
    const Array share =
        each(plus(raised, w_.next()), [](double a, Index) { return oracle::logistic(a); });
    const Array apart = both(handed_, values_, std::minus<>());
    values_ = both(values_, both(apart, share, std::multiplies<>()), std::plus<>());
  }

  Array side(bool passes, bool silu, Index heads, bool may_shift, bool may_norm) {
    const Array& from = from_ = mixed(rows_);
    Array y = product(from, w_.next());
    if (block_.projection_biases) y = plus(y, w_.next());
    if (passes && block_.convolution.kernel > 0) {
      y = convolved(y, w_.next());
      if (block_.convolution.bias) y = plus(y, w_.next());
    }
    if (silu) y = each(y, silu_of);
    if (block_.key_value_shift && may_shift) {
      const Array share = product(from, w_.next()), last = before_of(y);
      for (Index b = 0; b < y.batch; ++b)
        for (Index t = 0; t < y.len; ++t)
          for (Index c = 0; c < y.dim; ++c)
            y.at(b, 0, t, c) += oracle::logistic(share.at(b, 0, t, c / (y.dim / heads))) *
                                (last.at(b, 0, t, c) - y.at(b, 0, t, c));
    }
    if (block_.query_key_norm && may_norm) {
      const Array& gain = w_.next();
      y = each(normed(y, y.dim / heads, false, 1e-5),
               [&](double a, Index c) { return a * gain.at(0, 0, 0, c); });
    }
    return y;
  }

  // Rows [batch, 1, len, heads · width] for all heads of every part, [batch · parts, heads, len,
  // width].
  Array of_heads(const Array& rows, Index heads) const {
    const Index width = rows.dim / heads;
    Array out(rows.batch * parts_, heads_, rows.len, width);
    for (Index b = 0; b < out.batch; ++b)
      for (Index h = 0; h < heads_; ++h)
        for (Index t = 0; t < rows.len; ++t)
          for (Index c = 0; c < width; ++c)
            out.at(b, h, t, c) = rows.at(b / parts_, 0, t, h / (heads_ / heads) * width + c);
    return out;
  }
  // The same, with zeros up to head_dim.
  Array of_keys(const Array& rows, Index heads) const {
    const Array narrow = of_heads(rows, heads);
    Array out(narrow.batch, narrow.heads, narrow.len, dim_);
    for (Index b = 0; b < out.batch; ++b)
      for (Index h = 0; h < out.heads; ++h)
        for (Index t = 0; t < out.len; ++t)
          std::copy_n(narrow.row(b, h, t).data(), narrow.dim, out.line(b, h, t));
    return out;
  }
  Array in_parts(const Array& rows) const {
    Array out(rows.batch * parts_, heads_, rows.len, dim_);
    for (Index b = 0; b < out.batch; ++b)
      for (Index h = 0; h < heads_; ++h)
        for (Index t = 0; t < rows.len; ++t)
          for (Index c = 0; c < dim_; ++c)
            out.at(b, h, t, c) = rows.at(b / parts_, 0, t, (h * parts_ + b % parts_) * dim_ + c);
    return out;
  }
  Array from_parts(const Array& x) const {
    Array out(x.batch / parts_, 1, x.len, x.heads * parts_ * x.dim);
    for (Index b = 0; b < x.batch; ++b)
      for (Index h = 0; h < x.heads; ++h)
        for (Index t = 0; t < x.len; ++t)
          for (Index c = 0; c < x.dim; ++c)
            out.at(b / parts_, 0, t, (h * parts_ + b % parts_) * x.dim + c) = x.at(b, h, t, c);
    return out;
  }

  Array output_gate() {
    if (block_.gate == LayerBlock::Gate::none) return {};
    Array z = mixed(rows_);
    if (block_.gate_rank != 0) z = product(z, w_.next());
    if (block_.gate_sigmoid_inside)
      z = each(z, [](double a, Index) { return oracle::logistic(a); });
    z = product(z, w_.next());
    return block_.gate_bias ? plus(z, w_.next()) : z;
  }

  // (Σ q ⊙ k ⊙ ρ)·v of each head.
  Array bonus_of(const ReferenceInputs& in, const Array& rho) const {
    const Array keys = base_.written_keys ? base_.written_keys(in) : in.k;
    Array out = in.v;
    for (Index b = 0; b < out.batch; ++b)
      for (Index h = 0; h < out.heads; ++h)
        for (Index t = 0; t < out.len; ++t) {
          double sum = 0;
          for (Index c = 0; c < dim_; ++c)
            sum += in.q.at(b, h, t, c) * keys.at(b, h, t, c) * rho.at(0, 0, 0, h * dim_ + c);
          for (Index c = 0; c < out.dim; ++c) out.at(b, h, t, c) *= sum;
        }
    return out;
  }

  void gates_of(const AttentionConfig& config, const Array& values, ReferenceInputs& in) {
    const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const GateInput& gate : base_.gates_of(heads_, dim_, config.params)) {
      Array y = block_.gates_of_values ? values : rows_;
      y = mixed(y);
      if (gate.rank > 0) y = product(y, w_.next());
      if (is_in(block_.tanh_gates, gate.name))
        y = each(y, [](double a, Index) { return std::tanh(a); });
      y = product(y, w_.next());
      if (!gate.bias.empty() || is_in(block_.biased_gates, gate.name)) y = plus(y, w_.next());
      if (is_in(block_.convolution.gates, gate.name)) y = each(convolved(y, w_.next()), silu_of);
      in.gates.push_back(of_heads(y, is_in(block_.shared_gates, gate.name) ? 1 : heads_));
    }
  }

  Array normalised(Array y, const Array* gain, const Array* shift) const {
    using Norm = LayerBlock::Norm;
    if (block_.norm == Norm::none) return y;
    const bool of_heads = block_.norm == Norm::rms_of_heads || block_.norm == Norm::layer_of_heads;
    const bool centred = block_.norm == Norm::layer || block_.norm == Norm::layer_of_heads;
    y = normed(y, of_heads ? dim_ * parts_ : y.dim, centred, block_.norm_epsilon);
    if (gain) y = each(y, [&](double a, Index c) { return a * gain->at(0, 0, 0, c % gain->dim); });
    return shift ? plus(y, *shift) : y;
  }

  const VariantInfo& base_;
  const LayerBlock& block_;
  const ReferenceInputs& x_;
  Weights w_;
  Index heads_, dim_, parts_;
  Array rows_, before_;
  Array from_;  // what the side at hand is projected from
  Array values_, handed_;
  ReferenceInputs in_;
  const Array* data_share_ = nullptr;
};

}  // namespace

oracle::Array paper_reference(const VariantInfo& base, const ReferenceInputs& x) {
  return Walk(base, x).answer();
}

oracle::Array paper_handed_on(const VariantInfo& base, const ReferenceInputs& x) {
  return Walk(base, x).handed_on();
}

}  // namespace attn
