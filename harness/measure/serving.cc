// Calls of a served batch, group by group; see serving.h.
#include "harness/measure/serving.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "core/ops/ops_heads.h"
#include "harness/measure/workload_cost.h"
#include "harness/measure/workload_inputs.h"
#include "variants/api/answer.h"

namespace attn {
namespace {

using Clock = std::chrono::steady_clock;

// What one call brings of each sequence of a group.
struct Brought {
  Tensor q, k, v;  // [count, heads or kv_heads, positions, head_dim]
  std::vector<Tensor> gates;
};

// The inputs of a group are drawn as those of a workload of that many sequences.
WorkloadSpec spec_of_group(const WorkloadSpec& spec, size_t index) {
  WorkloadSpec own = spec;
  own.batch = spec.served[index].count;
  own.length = spec.served[index].held() + 1;
  own.mode = Mode::decode;
  own.seed = rng(spec.input_seed(), "served group", index).bits();
  own.draw = 0;
  return own;
}

Brought drawn_call(const WorkloadSpec& own, const Attention& attention, int64_t call,
                   int64_t positions) {
  constexpr uint64_t kAfterHeld = uint64_t{1} << 32;  // indices of gates of what is held are less
  const Shape query{own.batch, own.heads, positions, own.head_dim},
      key = query.with(1, own.key_heads());
  const auto index = static_cast<uint64_t>(call);
  return {Tensor::normal(query, rng(own.seed, "served queries", index)),
          Tensor::normal(key, rng(own.seed, "served keys", index)),
          Tensor::normal(key, rng(own.seed, "served values", index)),
          random_gates(attention.gates(), own.batch, own.heads, positions, own.seed, 1,
                       kAfterHeld + index)};
}

// Writes one sequence of x [count, h, len, dim] from position `at` of all [1, heads, n, dim] on,
// each of its heads as often as query heads share it.
void put_sequence(const Tensor& x, int64_t sequence, int64_t at, const Tensor& all) {
  const int64_t heads = all.dim(1), own = x.dim(1), rows = x.dim(2) * x.dim(3);
  for (int64_t head = 0; head < heads; ++head)
    std::copy_n(x.data() + (sequence * own + head * own / heads) * rows, rows,
                all.data() + (head * all.dim(2) + at) * all.dim(3));
}

// Of one sequence: [1, heads, len, dim].
Tensor sequence_of(const Tensor& x, int64_t sequence) {
  const Tensor one(x.shape().with(0, 1));
  put_sequence(x, sequence, 0, one);
  return one;
}

}  // namespace

struct Serving::Group {
  SequenceGroup of;
  std::vector<Prefill> held;
  std::vector<Brought> calls;
  ChangingRow<real> changing;
  std::unique_ptr<Decoder> decoder;
  Tensor first, later;  // answers of the first call, and of the latest one after it
};

struct Serving::State {
  WorkloadSpec spec;
  std::unique_ptr<Attention> attention;
  std::vector<Group> groups;
  int64_t made = 0, rounds = 0;  // calls of this round

  Tensor repeated(const Tensor& x) const { return repeat_heads(Var(x), spec.group()).value(); }

  void make_group(size_t index) {
    const WorkloadSpec own = spec_of_group(spec, index);
    Group group{.of = spec.served[index]};
    const int64_t held = group.of.held(), many = prefill_positions(own);
    for (int64_t at = 0; at < held; at += many)
      group.held.push_back(drawn_prefill(own, *attention, at, std::min(many, held - at)));
    for (int64_t call = 0; call < kServedCalls; ++call)
      group.calls.push_back(drawn_call(own, *attention, call, call == 0 ? group.of.queries : 1));
    const Brought& first = group.calls[0];
    const Tensor& row_of = reads_of(spec).queries ? first.q : first.v;
    group.changing = {row_of.data() + (row_of.dim(2) - 1) * row_of.dim(3), row_of.dim(3), own};
    group.later = Tensor(group.calls[1].q.shape());
    groups.push_back(std::move(group));
  }

  void fill(Group& group) const {
    group.decoder.reset();  // its memory serves the next one
    group.decoder = attention->decoder(group.of.count, group.of.total + kServedCalls - 1,
                                       spec.kv_heads, spec.dtype, spec.cache);
    Decoder& decoder = *group.decoder;
    for (const Prefill& part : group.held)
      decoder.extend(part.keys, part.values,
                     decoder.keys_are_queries() ? repeated(part.keys) : part.keys, part.gates);
  }

  void answer_prompt(Group& group, const Brought& now) const {
    const Mask causal{true, {}};
    group.first = attention
                      ->forward(Var(now.q), Var(repeated(now.k)), Var(repeated(now.v)), causal,
                                leaves_of(now.gates))
                      .value();
    group.decoder->extend(now.k, now.v, now.q, now.gates);
  }

  void call() {
    ATTN_CHECK(made < kServedCalls, "a round has {} calls", kServedCalls);
    const NoGrad no_grad;
    for (Group& group : groups) {
      const Brought& now = group.calls[static_cast<size_t>(made)];
      if (made == 0 && group.of.is_prompt()) {
        answer_prompt(group, now);
        continue;
      }
      answer(*group.decoder, now.q, now.k, now.v, made == 0 ? group.first : group.later, now.gates);
    }
    ++made;
  }
};

Serving::Serving(const WorkloadSpec& spec) : state_(std::make_unique<State>()) {
  ATTN_CHECK(spec.variant && spec.mode == Mode::serve, "a workload to serve needs a variant");
  const std::optional<std::string> reason = why_not(spec);
  ATTN_CHECK(!reason, "{}: {}", spec.variant->name, *reason);
  State& s = *state_;
  s.spec = spec;
  set_threads(spec.threads);
  AttentionConfig config;
  config.heads = spec.heads;
  config.head_dim = spec.head_dim;
  config.max_len = longest_of(spec.served) + kServedCalls - 1;
  config.causal = true;
  config.seed = spec.seed;
  s.attention = spec.variant->build(std::move(config), spec.params);
  for (size_t i = 0; i < spec.served.size(); ++i) s.make_group(i);
}

Serving::~Serving() = default;

void Serving::begin() {
  const NoGrad no_grad;
  State& s = *state_;
  set_threads(s.spec.threads);
  for (Group& group : s.groups) {
    group.changing.take(s.rounds);
    group.first = Tensor(group.calls[0].q.shape());
    s.fill(group);
  }
  s.made = 0;
  ++s.rounds;
}

void Serving::call() { state_->call(); }

ServedTimes Serving::time_rounds(int64_t rounds) {
  ServedTimes times;
  for (int64_t round = 0; round < rounds; ++round) {
    begin();
    for (int64_t at = 0; at < kServedCalls; ++at) {
      const Clock::time_point start = Clock::now();
      call();
      const std::chrono::duration<double> taken = Clock::now() - start;
      (at == 0 ? times.first_s : times.later_s).push_back(taken.count());
    }
  }
  return times;
}

double Serving::first_call_flops() {
  begin();
  const double before = counters().flops;
  call();
  return counters().flops - before;
}

int64_t Serving::state_bytes() const {
  const State& s = *state_;
  int64_t bytes = 0;
  for (const Group& group : s.groups) {
    AttentionShape shape = s.spec.shape();
    shape.batch = group.of.count;
    shape.q_len = shape.kv_len = group.of.total;
    bytes += std::llround(s.attention->state_bytes(shape, s.spec.kv_heads));
  }
  return bytes;
}

bool Serving::has_run() const { return state_->made == kServedCalls; }
size_t Serving::groups() const { return state_->groups.size(); }
const WorkloadSpec& Serving::spec() const { return state_->spec; }

SeenPass Serving::seen(size_t index, int64_t sequence, bool in_last_call) const {
  const State& s = *state_;
  ATTN_CHECK(has_run(), "no round has run to its end");
  const Group& group = s.groups.at(index);
  const size_t calls = in_last_call ? group.calls.size() : 1;
  const int64_t count = group.of.total + static_cast<int64_t>(calls) - 1;
  const Shape row{1, s.spec.heads, count, s.spec.head_dim};
  SeenPass seen{.variant = s.spec.variant,
                .params = s.spec.params,
                .attention = s.attention.get(),
                .q = Tensor(row),
                .k = Tensor(row),
                .v = Tensor(row),
                .out = sequence_of(in_last_call ? group.later : group.first, sequence),
                .causal = true};
  for (const GateInput& gate : s.attention->gates())
    seen.gates.emplace_back(row.with(3, gate.width));
  int64_t at = 0;
  const auto add = [&](const Tensor& q, const Tensor& k, const Tensor& v,
                       const std::vector<Tensor>& gates) {
    put_sequence(q, sequence, at, seen.q);
    put_sequence(k, sequence, at, seen.k);
    put_sequence(v, sequence, at, seen.v);
    for (size_t i = 0; i < gates.size(); ++i) put_sequence(gates[i], sequence, at, seen.gates[i]);
    at += k.dim(2);
  };
  // A decoder that takes queries as keys got the keys of its positions as such.
  for (const Prefill& part : group.held) add(part.keys, part.keys, part.values, part.gates);
  for (size_t call = 0; call < calls; ++call) {
    const Brought& now = group.calls[call];
    add(now.q, now.k, now.v, now.gates);
  }
  return seen;
}

}  // namespace attn
