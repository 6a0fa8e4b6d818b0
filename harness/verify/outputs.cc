// Outputs row by row; see outputs.h.
#include "harness/verify/outputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "harness/check/parts.h"
#include "harness/check/subject.h"
#include "variants/api/cache_rounding.h"
#include "variants/api/carrying.h"

namespace attn {
namespace {

constexpr double kSmallShare = 0.01;  // of the largest entry of all rows, see Allowance
// Of ties, as in harness/check/tied_rows.cc.
constexpr int kDraws = 8;
constexpr double kRounding = 32 * static_cast<double>(std::numeric_limits<real>::epsilon());
constexpr size_t kLeastTied = 2, kMostShare = 16;
// In units of 2^-8, as in harness/check/bfloat16.cc: the output is rounded once; weights of a
// variant that reads bfloat16 are rounded too, and their errors are independent.
constexpr double kOfItself = 1, kOfWeights = 2;

// One row of one head.
struct Place {
  int64_t batch = 0, head = 0, row = 0;
};

class Rows {
 public:
  Rows(const Tensor& got, const oracle::Array& wanted, const std::vector<int64_t>& rows,
       int64_t first, const Allowance& allowed)
      : got_(got), wanted_(wanted), first_(first), allowed_(allowed) {
    for (int64_t b = 0; b < wanted.batch; ++b)
      for (int64_t h = 0; h < wanted.heads; ++h)
        for (const int64_t row : rows) places_.push_back({b, h, row});
    for (const Place& place : places_) largest_ = std::max(largest_, largest_of(wanted, place));
  }

  const std::vector<Place>& places() const { return places_; }
  double unit(const Place& at) const {
    return std::max({largest_of(wanted_, at), kSmallShare * largest_,
                     static_cast<double>(std::numeric_limits<real>::min())});
  }
  // The largest difference of the row from that of `wanted`, over what is allowed; infinite for
  // NaN. `channel` is where.
  double share(const Place& at, const oracle::Array& wanted, int64_t& channel) const {
    const double of_row = unit(at) * allowed_.of_unit;
    double worst = -1;
    for (int64_t c = 0; c < wanted.dim; ++c) {
      const double want = wanted.at(at.batch, at.head, at.row, c);
      const double off = std::abs(number(at, c) - want);
      double share = off / (of_row + allowed_.of_itself * std::abs(want));
      if (std::isnan(share)) share = std::numeric_limits<double>::infinity();
      if (share <= worst) continue;
      worst = share;
      channel = c;
    }
    return worst;
  }
  double number(const Place& at, int64_t channel) const {
    const int64_t matrix = at.batch * wanted_.heads + at.head;
    return static_cast<double>(
        got_[(matrix * got_.dim(2) + at.row - first_) * got_.dim(3) + channel]);
  }

 private:
  static double largest_of(const oracle::Array& x, const Place& at) {
    double largest = 0;
    for (const double value : x.row(at.batch, at.head, at.row))
      largest = std::max(largest, std::abs(value));
    return largest;
  }

  const Tensor& got_;
  const oracle::Array& wanted_;
  const int64_t first_;
  const Allowance allowed_;
  std::vector<Place> places_;
  double largest_ = 0;
};

std::string fault_text(const Rows& rows, const Place& at, int64_t channel,
                       const oracle::Array& wanted, double error, double bound,
                       const std::string& against, int64_t named_from) {
  return fmt::format(
      "row {} of head {}{} is {:.6g} in channel {} where {} gives {:.6g}: off by {:.1e} of the "
      "row's largest entry; allowed {:.1e}",
      at.row + named_from, at.head,
      wanted.batch > 1 ? fmt::format(" of sequence {}", at.batch) : "", rows.number(at, channel),
      channel, against, wanted.at(at.batch, at.head, at.row, channel), error, bound);
}

struct Off {
  Place at;
  double share = 0;
  int64_t channel = 0;
};

// The rows that are off; `compared` gets the largest error of the others.
std::vector<Off> rows_off(const Rows& rows, const oracle::Array& wanted, ComparedRows& compared) {
  std::vector<Off> off;
  for (const Place& at : rows.places()) {
    int64_t channel = 0;
    const double share = rows.share(at, wanted, channel);
    if (!(share <= 1))
      off.push_back({at, share, channel});
    else
      compared.error = std::max(compared.error, share * compared.bound);
  }
  return off;
}

void report(const Rows& rows, const oracle::Array& wanted, const std::vector<Off>& off,
            const std::string& against, ComparedRows& compared, int64_t named_from = 0) {
  if (off.empty()) return;
  const Off& worst = *std::max_element(
      off.begin(), off.end(), [](const Off& a, const Off& b) { return a.share < b.share; });
  compared.error = worst.share * compared.bound;
  compared.fault = fault_text(rows, worst.at, worst.channel, wanted, compared.error, compared.bound,
                              against, named_from);
  if (off.size() > 1)
    *compared.fault +=
        fmt::format("; {} of {} compared rows are off", off.size(), rows.places().size());
}

void jitter(oracle::Array& of, Rng& random) {
  for (double& value : of.x) value += kRounding * random.normal();
}

// Those of `off` that no inputs within rounding explain. The others are tied.
std::vector<Off> without_ties(const SeenPass& seen, const ReferenceInputs& inputs, const Rows& rows,
                              std::vector<Off> off, ComparedRows& compared) {
  if (off.size() > std::max(kLeastTied, rows.places().size() / kMostShare)) return off;
  ReferenceInputs near = inputs;
  near.rows.clear();
  for (const Off& one : off) near.rows.push_back(one.at.row);
  std::sort(near.rows.begin(), near.rows.end());
  near.rows.erase(std::unique(near.rows.begin(), near.rows.end()), near.rows.end());
  Rng random = rng(76, "tied rows");
  for (int draw = 0; draw < kDraws && !off.empty(); ++draw) {
    near.q = inputs.q, near.k = inputs.k, near.v = inputs.v;
    jitter(near.q, random);
    jitter(near.k, random);
    if (seen.variant->traits.mixer) jitter(near.v, random);  // what its queries and keys are of
    const oracle::Array other = seen.variant->reference(near);
    std::erase_if(off, [&](const Off& one) {
      int64_t channel = 0;
      if (!(rows.share(one.at, other, channel) <= 1)) return false;
      compared.tied.push_back(one.at.row);
      return true;
    });
  }
  return off;
}

ComparedRows begin(const Rows& rows, const Allowance& allowed) {
  return {.rows = std::ssize(rows.places()), .bound = allowed.of_unit + allowed.of_itself};
}

}  // namespace

ReferenceInputs reference_inputs(const SeenPass& seen, std::vector<int64_t> rows) {
  ReferenceInputs inputs{.q = oracle_array(seen.q),
                         .k = oracle_array(seen.k),
                         .v = oracle_array(seen.v),
                         .weights = {},
                         .gates = {},
                         .config = seen.attention->config(),
                         .mask = {seen.causal, {}},
                         .rows = std::move(rows)};
  if (seen.received.defined()) inputs.received = oracle_array(as_matrices(seen.received));
  for (const Tensor& gate : seen.gates) inputs.gates.push_back(oracle_array(gate));
  for (const Weight& weight : seen.attention->weights())
    inputs.weights.push_back(oracle_array(weight.value.value()));
  return inputs;
}

SeenPass first_positions(const SeenPass& seen, int64_t length) {
  SeenPass piece = seen;
  for (Tensor* x : {&piece.q, &piece.k, &piece.v, &piece.out})
    *x = part(*x, 2, 0, std::min(length, x->dim(2)));
  for (Tensor& gate : piece.gates) gate = part(gate, 2, 0, length);
  if (const CarryingMixer* const carrying = as_carrying(*seen.attention))
    for (Tensor* x : {&piece.received, &piece.handed})
      if (x->defined()) *x = part(*x, 1, 0, carrying->handed_shape(x->dim(0), length)[1]);
  return piece;
}

Allowance allowance_of(const SeenPass& seen, Dtype dtype, int64_t length, CacheType cache) {
  Allowance allowed{.of_unit = tolerance(length) + rounding_beside_cache(cache)};
  if (dtype == Dtype::float32) return allowed;
  allowed.of_itself = kOfItself * kBFloat16Rounding;
  if (!seen.widened) allowed.of_unit += kOfWeights * kBFloat16Rounding;
  return allowed;
}

ComparedRows compare_rows(const Tensor& got, const oracle::Array& wanted,
                          const std::vector<int64_t>& rows, int64_t first, const Allowance& allowed,
                          const std::string& against, int64_t named_from) {
  const Rows all(got, wanted, rows, first, allowed);
  ComparedRows compared = begin(all, allowed);
  report(all, wanted, rows_off(all, wanted, compared), against, compared, named_from);
  return compared;
}

ComparedRows compare_handed(const SeenPass& seen, const ReferenceInputs& inputs) {
  std::vector<int64_t> rows(static_cast<size_t>(seen.handed.dim(1)));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  ComparedRows compared =
      compare_rows(as_matrices(seen.handed), seen.variant->handed_on(inputs), rows, 0,
                   allowance_of(seen, Dtype::float32, inputs.k.len), "the reference");
  if (compared.fault) compared.fault = "what a layer hands on: " + *compared.fault;
  return compared;
}

ComparedRows compare_outputs(const SeenPass& seen, const ReferenceInputs& inputs, Dtype dtype) {
  const oracle::Array wanted = seen.variant->reference(inputs);
  const int64_t first = inputs.q.len - seen.out.dim(2);
  const Allowance allowed = allowance_of(seen, dtype, inputs.k.len, inputs.cache);
  const Rows rows(seen.out, wanted, oracle::wanted_rows(inputs.rows, inputs.q.len), first, allowed);
  ComparedRows compared = begin(rows, allowed);
  std::vector<Off> off = rows_off(rows, wanted, compared);
  if (!off.empty()) off = without_ties(seen, inputs, rows, std::move(off), compared);
  report(rows, wanted, off, "the reference", compared);
  return compared;
}

}  // namespace attn
