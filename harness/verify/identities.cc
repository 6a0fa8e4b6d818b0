// Identities of outputs; see identities.h. Each costs one pass of the length at most, and its trial
// at a short length.
#include "harness/verify/identities.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "harness/check/subject.h"
#include "harness/verify/chosen_rows.h"

namespace attn {
namespace {

constexpr int64_t kLongestPiece = 128, kShortestPiece = 8;

// A sequence, and what was answered to it.
struct Answered {
  Inputs x;
  Tensor out;
};

class Probe {
 public:
  Probe(const SeenPass& seen, Dtype dtype) : seen_(seen), dtype_(dtype) {}

  const SeenPass& seen() const { return seen_; }
  bool can_run(int64_t length) const {
    return !seen_.variant->why_not(
        shape_of(length), Params(seen_.variant->name, seen_.variant->params, seen_.params));
  }
  Tensor output(const Inputs& x, std::vector<int64_t> lengths = {}) const {
    return output_of(*seen_.attention, x, {seen_.causal, std::move(lengths)});
  }
  // A length whose multiple is `length`; nullopt: none.
  std::optional<int64_t> piece_of(int64_t length) const {
    for (int64_t piece = std::min(kLongestPiece, length / 2); piece >= kShortestPiece; --piece)
      if (length % piece == 0 && can_run(piece)) return piece;
    return std::nullopt;
  }
  std::optional<int64_t> shorter_than(int64_t length) const {
    for (int64_t less = std::min(kLongestPiece, length / 2); less >= kShortestPiece; --less)
      if (can_run(less)) return less;
    return std::nullopt;
  }
  AttentionShape shape_of(int64_t length) const {
    return {.batch = seen_.q.dim(0),
            .heads = seen_.q.dim(1),
            .q_len = length,
            .kv_len = length,
            .head_dim = seen_.q.dim(3),
            .causal = seen_.causal};
  }
  // Rows of `got` from `first` on beside all of `wanted`, or some of them.
  ComparedRows compare(const Tensor& got, const Tensor& wanted, const std::string& against,
                       std::vector<int64_t> rows = {}, int64_t named_from = 0) const {
    if (rows.empty()) {
      rows.resize(static_cast<size_t>(wanted.dim(2)));
      std::iota(rows.begin(), rows.end(), int64_t{0});
    }
    return compare_rows(got, oracle_array(wanted), rows, 0,
                        allowance_of(seen_, dtype_, seen_.q.dim(2)), against, named_from);
  }

 private:
  const SeenPass& seen_;
  const Dtype dtype_;
};

// nullopt: it does not apply.
using Identity = std::optional<ComparedRows> (*)(const Probe&, const Answered&);

Tensor rows_between(const Tensor& t, int64_t begin, int64_t end) { return part(t, 2, begin, end); }

// The rows `order` of x [batch, heads, len, dim].
Tensor in_order(const Tensor& x, const std::vector<int64_t>& order) {
  const int64_t dim = x.dim(3), len = x.dim(2), count = std::ssize(order);
  const Tensor result(x.shape().with(2, count));
  for (int64_t matrix = 0; matrix < x.dim(0) * x.dim(1); ++matrix)
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(x.data() + (matrix * len + order[static_cast<size_t>(i)]) * dim, dim,
                  result.data() + (matrix * count + i) * dim);
  return result;
}

Inputs in_order(const Inputs& x, const std::vector<int64_t>& order) {
  Inputs result{in_order(x.q, order), in_order(x.k, order), in_order(x.v, order)};
  for (const Tensor& gate : x.gates) result.gates.push_back(in_order(gate, order));
  return result;
}

std::optional<ComparedRows> prefix(const Probe& probe, const Answered& at) {
  const auto piece = probe.shorter_than(at.x.q.dim(2));
  if (!piece || !probe.seen().causal) return std::nullopt;
  return probe.compare(rows_between(at.out, 0, *piece), probe.output(part(at.x, 2, 0, *piece)),
                       fmt::format("a pass of the first {} positions alone", *piece));
}

std::optional<ComparedRows> suffix(const Probe& probe, const Answered& at) {
  const int64_t n = at.x.q.dim(2);
  const auto piece = probe.shorter_than(n);
  if (!piece) return std::nullopt;
  const Tensor alone = probe.output(part(at.x, 2, n - *piece, n));
  return probe.compare(rows_between(at.out, n - 1, n), rows_between(alone, *piece - 1, *piece),
                       fmt::format("a pass of the last {} positions alone", *piece), {}, n - 1);
}

std::optional<ComparedRows> copies(const Probe& probe, const Answered& at) {
  const int64_t n = at.x.q.dim(2);
  const auto piece = probe.piece_of(n);
  if (!piece) return std::nullopt;
  const Inputs once = part(at.x, 2, 0, *piece);
  std::vector<int64_t> order(static_cast<size_t>(n)), ends;
  for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i % *piece;
  for (int64_t i = *piece - 1; i < n; i += *piece) ends.push_back(i);
  const Tensor alone = in_order(probe.output(once), order),
               all = probe.output(in_order(once, order));
  return probe.compare(
      all, alone,
      fmt::format("a pass of the {} positions, of which the sequence is {} copies,", *piece,
                  n / *piece),
      probe.seen().causal ? ends : std::vector<int64_t>{});
}

std::optional<ComparedRows> permutation(const Probe& probe, const Answered& at) {
  if (!probe.seen().variant->traits.permutable || probe.seen().causal) return std::nullopt;
  std::vector<int64_t> order(static_cast<size_t>(at.x.q.dim(2)));
  std::iota(order.begin(), order.end(), int64_t{0});
  Rng random = rng(78, "permutation");
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return probe.compare(in_order(at.out, order), probe.output(in_order(at.x, order)),
                       "a pass of the permuted positions");
}

std::optional<ComparedRows> padding(const Probe& probe, const Answered& at) {
  const auto piece = probe.shorter_than(at.x.q.dim(2));
  if (!piece || !probe.seen().variant->traits.padding) return std::nullopt;
  const Tensor padded =
      probe.output(at.x, std::vector<int64_t>(static_cast<size_t>(at.x.q.dim(0)), *piece));
  return probe.compare(rows_between(padded, 0, *piece), probe.output(part(at.x, 2, 0, *piece)),
                       fmt::format("a pass of the {} positions that are no padding", *piece));
}

std::optional<ComparedRows> ones(const Probe& probe, const Answered& at) {
  const VariantInfo& info = *probe.seen().variant;
  const Params params(info.name, info.params, probe.seen().params);
  if (!info.convex(params, probe.seen().causal)) return std::nullopt;
  const Tensor one = Tensor::full(at.x.v.shape(), 1);
  return probe.compare(probe.output(at.x.with_values(one)), one, "the value 1 of every key");
}

std::optional<ComparedRows> decoder(const Probe& probe, const Answered& at) {
  const SeenPass& seen = probe.seen();
  const VariantInfo& info = *seen.variant;
  const int64_t n = at.x.q.dim(2);
  const Params params(info.name, info.params, seen.params);
  if (n < 2 || !seen.causal || info.why_no_decoder(probe.shape_of(n), params)) return std::nullopt;
  if (as_forgetting(*seen.attention)) return std::nullopt;
  const NoGrad no_grad;
  const auto state = seen.attention->decoder(at.x.q.dim(0), n);
  const Inputs before = part(at.x, 2, 0, n - 1), last = part(at.x, 2, n - 1, n);
  state->extend(before.k, before.v, before.q, before.gates);
  const Tensor out(last.q.shape());
  state->step(last.q, last.k, last.v, out, last.gates);
  return probe.compare(rows_between(at.out, n - 1, n), out, "the decoder", {}, n - 1);
}

struct Named {
  const char* name;
  Identity identity;
  bool is_promised = true;  // by a trait, or by the mask
};
constexpr Named kIdentities[] = {{"copies", copies, false},
                                 {"permutation", permutation},
                                 {"prefix", prefix},
                                 {"suffix", suffix, false},
                                 {"decoder", decoder},
                                 {"padding", padding},
                                 {"ones", ones}};

void take_identity(const ComparedRows& one, const Named& of, ComparedIdentities& all) {
  if (one.fault) {
    std::optional<std::string>& found = of.is_promised ? all.fault : all.doubt;
    if (!found) found = fmt::format("identity {}: {}", of.name, *one.fault);
    return;
  }
  all.names.emplace_back(of.name);
  all.rows += one.rows;
  all.bound = one.bound;
  all.error = std::max(all.error, one.error);
}

}  // namespace

ComparedIdentities compare_identities(const SeenPass& seen, Dtype dtype) {
  const Probe probe(seen, Dtype::float32);
  const Inputs x{seen.q, seen.k, seen.v, seen.gates};
  const int64_t n = seen.q.dim(2);
  ComparedIdentities all;
  if (seen.received.defined()) return all;
  Answered at{x, seen.out};
  if (dtype != Dtype::float32) {
    at.out = probe.output(x);
    take_identity(Probe(seen, dtype).compare(seen.out, at.out, "a pass in float32"),
                  {"float32", nullptr}, all);
  }
  // The trial is of the first positions, where the contract checks compare more.
  int64_t trial_length = std::min(kTrialLength, n);
  while (trial_length > 1 && !probe.can_run(trial_length)) --trial_length;
  if (!probe.can_run(trial_length)) return all;
  // The trial is of an attention that is built for its length: positions that fade over the longest
  // length hardly differ over a short one.
  AttentionConfig config = seen.attention->config();
  config.max_len = trial_length;
  const std::unique_ptr<Attention> own = seen.variant->build(config, seen.params);
  SeenPass short_pass = seen;
  short_pass.attention = own.get();
  const Probe short_probe(short_pass, Dtype::float32);
  Answered trial{part(x, 2, 0, trial_length), {}};
  trial.out = short_probe.output(trial.x);
  for (const Named& each : kIdentities) {
    const std::optional<ComparedRows> tried = each.identity(short_probe, trial);
    if (!tried || tried->fault) continue;
    if (const std::optional<ComparedRows> one = each.identity(probe, at))
      take_identity(*one, each, all);
  }
  return all;
}

}  // namespace attn
