// Compares outputs and gradients with the variant's declared reference (VariantInfo::reference):
// the lengths lie on both sides of 64, 128, 256 and 512, which kernels use as tile sizes, and reach
// 1025, with one to seven heads, head sizes from 1 to 129, one and two threads, recorded or not,
// and a max_len at or above the length. Costs a forward pass of the reference per case, and two for
// all gradients together.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "harness/check/parts.h"
#include "harness/check/tied_rows.h"
#include "harness/check/variant_checks.h"

namespace attn {
namespace {

// Of a second try where a step of kReferenceStep crossed a kink, as it may among ten thousands of
// relus: the slopes on both sides then differ.
constexpr double kShorterReferenceStep = 3e-8;
// Gradients with smaller units are compared alone: their share of a step would cross kinks.
constexpr double kLeastUnit = 0.1;
constexpr int64_t kLongestGradients = 140, kLongestAtQuick = 70;  // lengths
constexpr int64_t kMostReferenceWork =
    600'000;  // numbers in the sums of a reference with gradients
constexpr int64_t kOneLongGradient = 600;
constexpr int64_t kGradientsAtPublished = 17;
// Of that one: among so many pairs a few do cross a kink.
constexpr double kLongReferenceSlope = 1e-2;

struct Size {
  int64_t q_len, kv_len, batch, heads, head_dim;
};

std::vector<Size> sizes(bool full) {
  std::vector<Size> result = {{1, 1, 2, 1, 5},      {7, 7, 2, 3, 5},   {65, 65, 2, 4, 16},
                              {130, 130, 1, 3, 65}, {5, 33, 2, 2, 16}, {34, 9, 2, 3, 5},
                              {3, 131, 1, 2, 64},   {9, 9, 5, 7, 1},   {5, 5, 1, 1, 129},
                              {1, 1025, 1, 1, 5}};
  if (full)
    result.insert(result.end(), {{2, 2, 1, 4, 64},
                                 {33, 33, 2, 4, 16},
                                 {63, 63, 1, 3, 5},
                                 {64, 64, 2, 4, 64},
                                 {66, 66, 1, 2, 65},
                                 {127, 127, 1, 3, 16},
                                 {128, 128, 2, 2, 64},
                                 {129, 129, 1, 4, 5},
                                 {255, 255, 1, 2, 64},
                                 {257, 257, 1, 4, 16},
                                 {511, 511, 1, 2, 5},
                                 {513, 513, 1, 3, 16},
                                 {33, 5, 2, 4, 64},
                                 {64, 257, 1, 3, 16},
                                 {130, 64, 1, 2, 5},
                                 {1, 513, 1, 4, 16},
                                 {200, 513, 1, 2, 5},
                                 {600, 600, 1, 1, 5},
                                 {1025, 1025, 1, 1, 5}});
  return result;
}

struct ReferenceCase {
  const Subject& subject;
  AttentionShape shape;
  std::vector<int64_t> lengths;
  double scale = 1;  // of queries and keys
  int64_t max_len = 0;
  bool alike = false;  // all queries are the same, and all keys: their weights tie
  bool edges = false;  // each query has a list of keys

  std::string name() const {
    return fmt::format("{}, {} heads of {}{}{}{}", text(shape), shape.heads, shape.head_dim,
                       lengths.empty() ? "" : ", padded", edges ? ", with edges" : "",
                       alike        ? ", rows alike"
                       : scale == 1 ? ""
                                    : fmt::format(", inputs of scale {:g}", scale));
  }
};

struct Made {
  std::unique_ptr<Attention> attention;
  Inputs x;
  ReferenceInputs reference;
};

void repeat_first_row(const Tensor& t) {
  const int64_t rows = t.dim(2), dim = t.dim(3);
  for (int64_t i = 0; i < t.size() / dim; i++)
    std::copy_n(t.data() + i / rows * rows * dim, dim, t.data() + i * dim);
}

Made make(const ReferenceCase& c) {
  const AttentionShape& s = c.shape;
  AttentionConfig config{.heads = s.heads,
                         .head_dim = s.head_dim,
                         .max_len = c.max_len,
                         .causal = s.causal,
                         .seed = 5,
                         .params = {}};
  Made made{c.subject.info.build(config, c.subject.given), {}, {}};
  made.x = make_inputs(*made.attention, s, 71, c.scale);
  config.params = c.subject.params;
  if (c.alike) repeat_first_row(made.x.q), repeat_first_row(made.x.k);
  for (int64_t b = 0; b < std::ssize(c.lengths); b++) {
    constexpr real kNaN = std::numeric_limits<real>::quiet_NaN();
    for (const Tensor& x : made.x.of_keys())
      fill_from(x, c.lengths[static_cast<size_t>(b)], kNaN, b);
  }
  made.reference = {.q = oracle_array(made.x.q),
                    .k = oracle_array(made.x.k),
                    .v = oracle_array(made.x.v),
                    .weights = {},
                    .gates = {},
                    .config = config,
                    .mask = mask_of(s, c.lengths)};
  for (const Tensor& gate : made.x.gates) made.reference.gates.push_back(oracle_array(gate));
  if (c.edges) made.reference.mask.edges = some_edges(s);
  move_weights(*made.attention, 72);
  for (const Weight& weight : made.attention->weights())
    made.reference.weights.push_back(oracle_array(weight.value.value()));
  return made;
}

// Returns what was wanted, with the rows where rounding chooses the keys.
Wanted compare_outputs(const ReferenceCase& c, const Made& made, const Tensor& recorded,
                       Verdict& verdict) {
  Wanted wanted{c.subject.info.reference(made.reference), {}, {}};
  const double allowed = c.scale * tolerance(c.shape.kv_len);
  const auto expect = [&](const Tensor& got, const char* how) {
    Gap off = gap_to(got, wanted);
    if (!(off.size <= allowed) && wanted.tied.empty()) {
      find_ties(c.subject.info.reference, made.reference, allowed, wanted);
      off = gap_to(got, wanted);
    }
    verdict.expect(off.size, allowed, "row {} is off by {:.1e} against the reference{} ({})",
                   off.row, off.size, how, c.name());
  };
  expect(output_of(*made.attention, made.x, made.reference.mask), "");
  expect(recorded, " when gradients are recorded");
  return wanted;
}

// A wrong gradient is off by about its own length. A gradient that cancels to zero leaves rounding
// of the size of the seed, which grows with the logits: they are sums of head_dim products.
double unit_of(const ReferencePart& part, const ReferenceCase& c, const Tensor& seed) {
  const double rounding =
      0.01 * c.subject.info.rounding * (1 + static_cast<double>(c.shape.head_dim) / 32);
  return length_of(part.gradient) + rounding * length_of(seed);
}

// What gradients give along one random direction of the entries that are finite, and what the
// reference gives.
struct Slopes {
  double claimed = 0, wanted = 0;
  double above = 0, below = 0;  // the reference a step up and a step down, times the seed
  double difference() const { return std::abs(claimed - wanted); }
};

double dot_with(const Tensor& seed, const oracle::Array& outputs) {
  double sum = 0;
  for (int64_t i = 0; i < seed.size(); i++)
    sum += static_cast<double>(seed[i]) * outputs.x[static_cast<size_t>(i)];
  return sum;
}

// Along all parts at once. `shares` has the length of the direction in the entries of each part.
Slopes slopes_of(const Made& made, const std::vector<const ReferencePart*>& parts,
                 const std::vector<double>& shares, const Reference& reference, const Tensor& seed,
                 double step) {
  ReferenceInputs up = made.reference, down = made.reference;
  Slopes result;
  for (size_t part = 0; part < parts.size(); part++) {
    std::vector<double>&higher = parts[part]->input(up).x, &lower = parts[part]->input(down).x;
    const Tensor& gradient = parts[part]->gradient;
    Rng random = rng(73, parts[part]->name);
    for (int64_t i = 0; i < gradient.size(); i++) {
      const auto at = static_cast<size_t>(i);
      const double along = shares[part] * random.normal();
      if (!std::isfinite(higher[at])) continue;  // padding
      higher[at] += step * along;
      lower[at] -= step * along;
      result.claimed += static_cast<double>(gradient[i]) * along;
    }
  }
  const oracle::Array high = reference(up), low = reference(down);
  for (int64_t i = 0; i < seed.size(); i++) {
    const auto at = static_cast<size_t>(i);
    result.wanted += static_cast<double>(seed[i]) * (high.x[at] - low.x[at]) / (2 * step);
  }
  result.above = dot_with(seed, high);
  result.below = dot_with(seed, low);
  return result;
}

double allowed_slope(const ReferenceCase& c) {
  return c.scale * (c.shape.kv_len == kOneLongGradient ? kLongReferenceSlope : kReferenceSlope);
}

void compare_gradient(const ReferenceCase& c, const Made& made, const ReferencePart& part,
                      const Reference& reference, const Tensor& seed, Verdict& verdict) {
  const double allowed = allowed_slope(c), unit = unit_of(part, c, seed);
  Slopes slopes = slopes_of(made, {&part}, {1}, reference, seed, kReferenceStep);
  const auto has_kink = [&] {
    const double middle = dot_with(seed, reference(made.reference));
    return std::abs(slopes.above + slopes.below - 2 * middle) / kReferenceStep > allowed * unit;
  };
  if (!(slopes.difference() <= allowed * unit) && has_kink())
    slopes = slopes_of(made, {&part}, {1}, reference, seed, kShorterReferenceStep);
  verdict.expect(slopes.difference() / unit, allowed,
                 "the gradient of {} gives {:.6g} along a direction where the reference gives "
                 "{:.6g} ({})",
                 part.name, slopes.claimed, slopes.wanted, c.name());
}

// One direction through all parts, with each part's share over its unit: a wrong gradient of any
// shows as much as alone, for two evaluations of the reference in all. Only where the sums disagree
// is each part compared alone.
void compare_together(const ReferenceCase& c, const Made& made,
                      const std::vector<const ReferencePart*>& parts, const Reference& reference,
                      const Tensor& seed, Verdict& verdict) {
  std::vector<const ReferencePart*> together;
  std::vector<double> shares;
  std::string names;
  for (const ReferencePart* part : parts) {
    const double unit = unit_of(*part, c, seed);
    if (!(unit >= kLeastUnit)) {
      compare_gradient(c, made, *part, reference, seed, verdict);
      continue;
    }
    together.push_back(part);
    shares.push_back(1 / unit);
    names += (names.empty() ? "" : ", ") + part->name;
  }
  if (together.empty()) return;
  const Slopes slopes = slopes_of(made, together, shares, reference, seed, kReferenceStep);
  if (!(slopes.difference() <= allowed_slope(c))) {
    for (const ReferencePart* part : together)
      compare_gradient(c, made, *part, reference, seed, verdict);
    return;
  }
  verdict.expect(slopes.difference(), allowed_slope(c),
                 "the gradients of {} give {:.6g} along a direction where the reference gives "
                 "{:.6g} ({})",
                 names, slopes.claimed, slopes.wanted, c.name());
}

// The declared surrogate around the inputs of the case, where it must equal the reference.
Reference surrogate_at(const ReferenceCase& c, const Made& made, Verdict& verdict) {
  const VariantInfo& info = c.subject.info;
  const oracle::Array wanted = info.reference(made.reference),
                      got = info.surrogate(made.reference, made.reference);
  double off = 0;
  for (size_t i = 0; i < wanted.x.size(); i++)
    if (!(std::abs(got.x[i] - wanted.x[i]) <= off)) off = std::abs(got.x[i] - wanted.x[i]);
  verdict.expect(off, 1e-9, "the surrogate is off by {:.1e} from the reference ({})", off,
                 c.name());
  return [&](const ReferenceInputs& x) { return info.surrogate(x, made.reference); };
}

void compare_gradients(const ReferenceCase& c, const Made& made, const Gradients& back,
                       const Tensor& seed, Verdict& verdict) {
  const VariantInfo& info = c.subject.info;
  std::vector<ReferencePart> parts = {
      {"q", [](ReferenceInputs& of) -> oracle::Array& { return of.q; }, back.q},
      {"k", [](ReferenceInputs& of) -> oracle::Array& { return of.k; }, back.k},
      {"v", [](ReferenceInputs& of) -> oracle::Array& { return of.v; }, back.v}};
  constexpr size_t kLogits = 2;  // parts whose gradients a surrogate declares
  for (size_t i = 0; i < back.gates.size(); i++)
    parts.push_back({"gate " + made.attention->gates()[i].name,
                     [i](ReferenceInputs& of) -> oracle::Array& { return of.gates[i]; },
                     back.gates[i]});
  size_t learned = 0;
  const std::vector<Weight> weights = made.attention->weights();
  for (size_t i = 0; i < weights.size(); i++)
    if (weights[i].learned)
      parts.push_back({weights[i].name,
                       [i](ReferenceInputs& of) -> oracle::Array& { return of.weights[i]; },
                       back.weights[learned++]});
  std::vector<const ReferencePart*> chosen;
  for (const ReferencePart& part : parts) chosen.push_back(&part);
  if (info.has_surrogate(c.subject.params)) {
    const auto rest = chosen.begin() + kLogits;
    compare_together(c, made, {chosen.begin(), rest}, surrogate_at(c, made, verdict), seed,
                     verdict);
    chosen.erase(chosen.begin(), rest);
  }
  compare_together(c, made, chosen, info.reference, seed, verdict);
}

void compare_case(const ReferenceCase& c, bool gradients, Verdict& verdict) {
  const Made made = make(c);
  const AttentionShape& s = c.shape;
  const Tensor seed =
      Tensor::normal({s.batch, s.heads, s.q_len, s.head_dim}, rng(74, "check reference"));
  Gradients back = gradients_of(*made.attention, made.x, made.reference.mask, seed);
  const Wanted wanted = compare_outputs(c, made, back.output, verdict);
  if (!gradients) return;
  if (!wanted.tied.empty()) {  // the reference may have chosen other keys there
    for (int64_t i = 0; i < seed.size(); i++)
      if (wanted.is_tied(i / s.head_dim)) seed[i] = 0;
    back = gradients_of(*made.attention, made.x, made.reference.mask, seed);
  }
  compare_gradients(c, made, back, seed, verdict);
}

// Gradients take two evaluations of the reference more: of the large sizes, outputs alone are
// compared. So are heads beyond 65, where variants that scale no logit round
// their gradients away.
bool has_gradients(const AttentionShape& s, bool full) {
  if (s.head_dim > 65) return false;
  const int64_t work = s.batch * s.heads * s.head_dim * s.q_len * s.kv_len;
  return s.kv_len == kOneLongGradient ||
         (work <= kMostReferenceWork && s.kv_len <= (full ? kLongestGradients : kLongestAtQuick));
}

// With and without padding.
void compare_masks(const Subject& subject, const AttentionShape& shape, int64_t max_len,
                   Verdict& verdict) {
  const int64_t n = shape.kv_len;
  const Traits& traits = subject.info.traits;
  if (!subject.can_run(shape)) return;
  for (const bool padded : {false, true}) {
    if (padded && (!traits.padding || n < 2)) continue;
    ReferenceCase c{subject, shape, {}, 1, max_len};
    if (padded) c.lengths = {shape.causal ? n - 1 : n - n / 8 - 1};
    for (int64_t b = 1; padded && b < shape.batch; b++) c.lengths.push_back(std::max(n / 2, n - b));
    if (padded && shape.batch > 1) c.lengths[1] = n / 2;
    const bool gradients = has_gradients(shape, subject.full());
    compare_case(c, gradients, verdict);
    if (traits.edges && n >= 7 && n <= 65) {
      c.edges = true;
      compare_case(c, gradients, verdict);
      c.edges = false;
    }
    if (n == 7) {
      c.alike = true;
      compare_case(c, false, verdict);
    }
    // Random features underflow at such logits (see check_range).
    if (n != 65 || (traits.random && traits.permutable)) continue;
    c.scale = 4;
    compare_case(c, gradients && (subject.full() || shape.causal != padded), verdict);
  }
}

}  // namespace

void check_reference(const Subject& subject, Verdict& verdict) {
  if (subject.only) {
    compare_masks(subject, *subject.only, subject.only->kv_len, verdict);
    AttentionShape shorter = *subject.only;  // short enough for gradients of all heads
    shorter.batch = 1;
    shorter.heads = subject.published_heads;
    shorter.q_len = shorter.kv_len = kGradientsAtPublished;
    return compare_masks(subject, shorter, shorter.kv_len, verdict);
  }
  int64_t number = 0;
  for (const Size& size : sizes(subject.full()))
    for (const bool causal : {false, true}) {
      number++;
      const ScopedThreads one_or_two(1 + static_cast<int>(number % 2));
      compare_masks(subject,
                    {.batch = size.batch,
                     .heads = size.heads,
                     .q_len = size.q_len,
                     .kv_len = size.kv_len,
                     .head_dim = size.head_dim,
                     .causal = causal},
                    size.kv_len + (number % 3 == 0 ? 3 : 0), verdict);
    }
}

}  // namespace attn
