// See distance_bias.h. Tables are computed in double, one number a distance and head.
#include "harness/model/distance_bias.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "core/autograd/var.h"
#include "core/base/check.h"
#include "harness/model/weights.h"

namespace attn {
namespace {

constexpr double kLeast = 0.01;   // of KERPLE's p and a, and so of their starts
constexpr double kMostPower = 2;  // beyond, r^p is no kernel (conditionally positive definite)

// A learned number within the range that it is used in. In place of the number, the range's end is
// used; a step that leads back into the range is taken, as if the number lay at the end.
struct Clamped {
  double value;
  bool below, above;

  Clamped(real x, double least, double most)
      : value(std::clamp(static_cast<double>(x), least, most)),
        below(static_cast<double>(x) < least),
        above(static_cast<double>(x) > most) {}
  double passed(double gradient) const {
    return (below && gradient > 0) || (above && gradient < 0) ? 0 : gradient;
  }
};

struct Kernel {
  bool power;
  Clamped p, a;

  Kernel(bool is_power, real p_of, real a_of)
      : power(is_power),
        p(p_of, kLeast, is_power ? kMostPower : kInfinity),
        a(a_of, kLeast, kInfinity) {}
  double bias(double r) const {
    return power ? -a.value * std::pow(r, p.value) : -p.value * std::log1p(a.value * r);
  }
  double slope_of_p(double r) const {
    if (r == 0) return 0;  // r^p·log r would be 0·∞
    return power ? bias(r) * std::log(r) : -std::log1p(a.value * r);
  }
  double slope_of_a(double r) const {
    return power ? -std::pow(r, p.value) : -p.value * r / (1 + a.value * r);
  }
};

// What stands at offset `key - query` of entry t: of the first key of a table, a number <= 0.
struct Entries {
  int64_t size, first;
  double distance(int64_t t) const { return std::abs(static_cast<double>(first + t)); }
};

Var alibi_table(int64_t heads, const Entries& entries) {
  const std::vector<double> slopes = slopes_of(heads);
  const Tensor table({heads, entries.size});
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t t = 0; t < entries.size; ++t)
      table[h * entries.size + t] =
          static_cast<real>(-slopes[static_cast<size_t>(h)] * entries.distance(t));
  return Var(table);
}

Var t5_table(const Var& weight, int64_t heads, const Entries& entries, bool causal) {
  const Tensor table({heads, entries.size}), from = weight.value();
  std::vector<int64_t> buckets;
  for (int64_t t = 0; t < entries.size; ++t)
    buckets.push_back(bucket_of(-(entries.first + t), causal));
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t t = 0; t < entries.size; ++t)
      table[h * entries.size + t] = from[buckets[static_cast<size_t>(t)] * heads + h];
  return custom_op(table, {weight}, [=](const Tensor& grad, std::span<Tensor> grads) {
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<double> sums(kBuckets, 0.0);
      for (int64_t t = 0; t < entries.size; ++t)
        sums[static_cast<size_t>(buckets[static_cast<size_t>(t)])] +=
            static_cast<double>(grad[h * entries.size + t]);
      for (int64_t b = 0; b < kBuckets; ++b)
        grads[0][b * heads + h] += static_cast<real>(sums[static_cast<size_t>(b)]);
    }
  });
}

Var kerple_table(const Var& p, const Var& a, int64_t heads, const Entries& entries, bool power) {
  const Tensor table({heads, entries.size}), ps = p.value(), as = a.value();
  const auto kernel = [=](int64_t h) { return Kernel(power, ps[h], as[h]); };
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t t = 0; t < entries.size; ++t)
      table[h * entries.size + t] = static_cast<real>(kernel(h).bias(entries.distance(t)));
  return custom_op(table, {p, a}, [=](const Tensor& grad, std::span<Tensor> grads) {
    for (int64_t h = 0; h < heads; ++h) {
      const Kernel of = kernel(h);
      double to_p = 0, to_a = 0;
      for (int64_t t = 0; t < entries.size; ++t) {
        const auto slope = static_cast<double>(grad[h * entries.size + t]);
        to_p += slope * of.slope_of_p(entries.distance(t));
        to_a += slope * of.slope_of_a(entries.distance(t));
      }
      if (grads[0].defined()) grads[0][h] += static_cast<real>(of.p.passed(to_p));
      if (grads[1].defined()) grads[1][h] += static_cast<real>(of.a.passed(to_a));
    }
  });
}

Weight uniform_weight(const std::string& name, int64_t heads, double most, uint64_t seed) {
  Weight made = constant_weight(name, {heads}, 0);
  Rng random = rng(seed, name);
  const Tensor start({heads});
  for (real& x : start.values()) x = static_cast<real>(random.uniform(kLeast, most));
  made.value.set_value(start);
  return made;
}

}  // namespace

std::vector<double> slopes_of(int64_t heads) {
  int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  const auto add = [&](int64_t h, int64_t of) {
    slopes.push_back(std::exp2(-8 * static_cast<double>(h) / static_cast<double>(of)));
  };
  for (int64_t h = 1; h <= power; ++h) add(h, power);
  for (int64_t h = 1; std::ssize(slopes) < heads; h += 2) add(h, 2 * power);
  return slopes;
}

int64_t bucket_of(int64_t distance, bool causal) {
  constexpr double kFar = 128;
  const int64_t side = causal ? kBuckets : kBuckets / 2, near = side / 2;
  const int64_t first = !causal && distance < 0 ? side : 0;
  const int64_t r = causal ? std::max<int64_t>(0, distance) : std::abs(distance);
  if (r < near) return first + r;
  // By log2, which is exact for powers of two: they begin a bucket.
  const auto start = static_cast<double>(near);
  const double part = std::log2(static_cast<double>(r) / start) / std::log2(kFar / start);
  return first + std::min(side - 1, near + static_cast<int64_t>(std::floor(part * start)));
}

DistanceBias::DistanceBias(Distances kind, int64_t heads, bool causal, uint64_t seed)
    : kind_(kind), heads_(heads), causal_(causal) {
  ATTN_CHECK(kind != Distances::none, "a bias of distances of no kind");
  const std::string name = "positions.";
  if (kind == Distances::t5)
    weights_ = {normal_weight(name + "buckets", {kBuckets, heads}, seed, 0.5)};
  if (kind == Distances::kerple || kind == Distances::kerple_power)
    weights_ = {uniform_weight(name + "p", heads, kMostPower, seed),
                uniform_weight(name + "a", heads, 1, seed)};
}

Var DistanceBias::table(int64_t q_len, int64_t kv_len) const {
  const Entries entries{q_len + kv_len - 1, 1 - kv_len};
  if (kind_ == Distances::alibi) return alibi_table(heads_, entries);
  if (kind_ == Distances::t5) return t5_table(weights_[0].value, heads_, entries, causal_);
  return kerple_table(weights_[0].value, weights_[1].value, heads_, entries,
                      kind_ == Distances::kerple_power);
}

Tensor DistanceBias::past(int64_t positions) const {
  const NoGrad no_grad;
  const Tensor all = table(1, positions).value();  // the farthest key first
  const Tensor past(all.shape());
  for (int64_t h = 0; h < heads_; ++h)
    std::reverse_copy(all.data() + h * positions, all.data() + (h + 1) * positions,
                      past.data() + h * positions);
  return past;
}

}  // namespace attn
