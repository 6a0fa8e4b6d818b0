// Forward of linear attention, one chunk of features at a time. Not causal: the state of all keys,
// then the queries. Causal: one sweep over the chunks, with explicit weights inside a chunk.
// 4·n·m·(d+1) FLOPs, causal about 86·n·(m+d) more. A workspace holds one state and one chunk for
// any n.
#include "variants/features/linear_attention.h"

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/span.h"
#include "core/simd/feature_rows.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"
#include "variants/features/linear_chunks.h"

namespace attn {
namespace {

LinearProblem problem_of(const Var& q, const Var& k, const Var& v, const LinearOptions& options) {
  LinearProblem p;
  p.batch = q.dim(0), p.heads = q.dim(1), p.q_len = q.dim(2), p.width = q.dim(3);
  p.kv_len = k.dim(2), p.dim = v.dim(3);
  p.features = options.map.features(p.width);
  p.causal = options.causal, p.kv_lengths = options.kv_lengths, p.map = options.map;
  p.scaled = options.log_scale.defined() || p.map.has_log_scale();
  ATTN_CHECK(k.shape() == q.shape().with(2, p.kv_len) && v.shape() == k.shape().with(3, p.dim),
             "linear attention: q {}, k {} and v {} do not fit", q.shape().str(), k.shape().str(),
             v.shape().str());
  ATTN_CHECK(p.given() || !options.log_scale.defined(),
             "linear attention: a log_scale of {} beside a map that makes its own",
             options.log_scale.shape().str());
  ATTN_CHECK(!options.log_scale.defined() ||
                 options.log_scale.shape() == Shape({p.batch, p.heads, p.kv_len}),
             "linear attention: a log_scale of {} beside keys of {}",
             options.log_scale.shape().str(), k.shape().str());
  p.map.check_fits(q.shape());
  return p;
}

// The parts of a worker's workspace.
struct Layout {
  explicit Layout(const LinearProblem& p) {
    panels = parts.take(RowFeatures::panel_reals(p.map));
    keys = parts.take(p.feature_reals());
    queries = p.causal ? parts.take(p.feature_reals()) : keys;
    log_scale = parts.take(p.chunk());
    scales = parts.take(p.chunk());
    values = parts.take(p.scaled ? p.chunk() * p.dim : 0);
    normalizer = parts.take(p.chunk());
    packed_keys = parts.take(p.causal ? packed_reals(p.chunk(), p.features) : 0);
    weights = parts.take(p.causal ? LinearProblem::kChunkStrip * p.chunk() : 0);
    rescale = parts.take(p.causal ? LinearProblem::kChunkStrip : 0);
    state = parts.take(p.state_reals());
  }
  WorkspaceParts parts;
  int64_t panels, keys, queries, log_scale, scales, values, normalizer, packed_keys, weights,
      rescale, state;
};

class LinearForward {
 public:
  LinearForward(const LinearProblem& p, LinearSaved& saved, bool keep)
      : p_(p), s_(saved), layout_(p), keep_(keep) {}

  void run() const {
    const int64_t heads = p_.total_heads(), pieces = p_.pieces();
    if (pieces > 1) return run_pieces(pieces);
    run_tasks(heads, layout_.parts.total(), [&](int64_t head, real* work) {
      const Head h = head_of(head, work);
      real* const state =
          keep_ && !p_.causal ? s_.states.data() + head * p_.state_reals() : work + layout_.state;
      clear_state(p_, state);
      if (p_.causal) return sweep(h, 0, 1, state, work);
      add_keys(h, 0, 1, state, work);
      divide_queries(h, 0, 1, state, work);
    });
  }

 private:
  struct Head {
    int64_t number;
    RowFeatures features;
  };
  Head head_of(int64_t head, real* work) const {
    return {head, RowFeatures(p_.map, p_.width, head % p_.heads, work + layout_.panels)};
  }

  // What each piece starts from is summed first, in parts for all threads: not causal, the state
  // of all keys; causal, of the keys before the piece.
  void run_pieces(int64_t pieces) const {
    const int64_t heads = p_.total_heads(), size = p_.state_reals();
    const int64_t parts = p_.summed_parts(pieces), starts = p_.causal ? pieces : 1;
    const Block block(sizeof(real) * static_cast<size_t>(heads * (parts + starts) * size),
                      Purpose::workspace);
    real *const sums = static_cast<real*>(block.data()), *const start = sums + heads * parts * size;
    run_tasks(heads * parts, layout_.parts.total(), [&](int64_t task, real* work) {
      clear_state(p_, sums + task * size);
      add_keys(head_of(task / parts, work), task % parts, p_.causal ? pieces * pieces : pieces,
               sums + task * size, work);
    });
    for (int64_t head = 0; head < heads; ++head) {
      real* state = start + head * starts * size;
      clear_state(p_, state);
      for (int64_t i = 0; i < parts; ++i) {
        if (p_.causal && i % pieces == 0) {
          std::copy_n(state, size, state + size);
          state += size;
        }
        merge_states(p_, sums + (head * parts + i) * size, state);
      }
      if (keep_ && !p_.causal) std::copy_n(state, size, s_.states.data() + head * size);
    }
    run_tasks(heads * pieces, layout_.parts.total(), [&](int64_t task, real* work) {
      const int64_t head = task / pieces, piece = task % pieces;
      if (p_.causal)
        sweep(head_of(head, work), piece, pieces, start + task * size, work);
      else
        divide_queries(head_of(head, work), piece, pieces, start + head * size, work);
    });
  }

  FeatureRows queries_of(const Head& h, const Chunk& chunk, real* work) const {
    return make_rows(p_, h.features, s_.q, h.number * p_.q_len + chunk.row, chunk.rows,
                     work + layout_.queries, nullptr);
  }
  FeatureRows keys_of(const Head& h, const Chunk& chunk, real* work) const {
    return make_rows(p_, h.features, s_.k, h.number * p_.kv_len + chunk.key, chunk.keys,
                     work + layout_.keys, scales_of(h, chunk, work));
  }
  real* scales_of(const Head& h, const Chunk& chunk, real* work) const {
    if (!p_.scaled) return nullptr;
    if (!s_.log_scale.defined()) return work + layout_.log_scale;
    return s_.log_scale.data() + h.number * p_.kv_len + chunk.key;
  }
  const real* values_of(const Head& h, const Chunk& chunk) const {
    return s_.v.data() + (h.number * p_.kv_len + chunk.key) * p_.dim;
  }
  real* out_of(const Head& h, const Chunk& chunk) const {
    return s_.out.data() + (h.number * p_.q_len + chunk.row) * p_.dim;
  }
  real* normalizer_of(const Head& h, const Chunk& chunk, real* work) const {
    return keep_ ? s_.normalizer.data() + h.number * p_.q_len + chunk.row
                 : work + layout_.normalizer;
  }

  void add_keys(const Head& h, int64_t piece, int64_t pieces, real* state, real* work) const {
    for_chunks(p_.key_chunks(), piece, pieces, [&](int64_t c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      add_chunk(h, chunk, keys_of(h, chunk, work), state, work);
    });
  }

  void add_chunk(const Head& h, const Chunk& chunk, const FeatureRows& keys, real* state,
                 real* work) const {
    if (chunk.keys == 0) return;
    const real* const log_scale = scales_of(h, chunk, work);
    real* const scales = work + layout_.scales;
    const real* values = values_of(h, chunk);
    const real running_max = raise_running_max(p_, state, log_scale, chunk.keys);
    {
      const Mark mark(Part::normalisation);
      relative_scales(log_scale, running_max, 0, chunk.keys, scales);
      if (log_scale) {
        scale_rows_by(values, scales, chunk.keys, p_.dim, work + layout_.values);
        values = work + layout_.values;
      }
    }
    add_to_state(p_, keys, values, scales, chunk.keys, state);
  }

  // out and normalizer of rows through the keys that a state holds; not yet divided.
  void add_state(const Chunk& chunk, const FeatureRows& queries, const real* state, real* out,
                 real* normalizer) const {
    const int64_t m = p_.features;
    product(chunk.rows, p_.dim, m, queries.left(), {state, p_.dim}, out, p_.dim);
    count_flops(2 * static_cast<double>(chunk.rows * m * (p_.dim + 1)));
    const Mark mark(Part::normalisation);
    dot_rows(chunk.rows, m, queries.data, queries.row, state + p_.sum_reals(), normalizer);
  }

  void divide(const Chunk& chunk, real* out, const real* normalizer) const {
    const Mark mark(Part::normalisation);
    for (int64_t r = 0; r < chunk.rows; ++r) {
      const real inverse = 1 / normalizer[r];
      real* const row = out + r * p_.dim;
      if (normalizer[r] < kLeastNormalizer)  // and not a NaN
        std::fill_n(row, p_.dim, real(0));
      else
        for (int64_t c = 0; c < p_.dim; ++c) row[c] *= inverse;
    }
  }

  void divide_queries(const Head& h, int64_t piece, int64_t pieces, const real* state,
                      real* work) const {
    for_chunks(p_.row_chunks(), piece, pieces, [&](int64_t c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      real *const out = out_of(h, chunk), *const normalizer = normalizer_of(h, chunk, work);
      add_state(chunk, queries_of(h, chunk, work), state, out, normalizer);
      divide(chunk, out, normalizer);
    });
  }

  void sweep(const Head& h, int64_t piece, int64_t pieces, real* state, real* work) const {
    for_chunks(p_.key_chunks(), piece, pieces, [&](int64_t c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      const FeatureRows keys = keys_of(h, chunk, work);
      if (chunk.rows > 0) {
        real *const out = out_of(h, chunk), *const normalizer = normalizer_of(h, chunk, work);
        const FeatureRows queries = queries_of(h, chunk, work);
        const real before = state[p_.state_reals() - 1];
        if (before != -kInfinity)
          add_state(chunk, queries, state, out, normalizer);
        else
          std::fill_n(normalizer, chunk.rows, real(0));  // and `out` is overwritten
        add_inside(h, chunk, queries, keys, before, out, normalizer, work);
        divide(chunk, out, normalizer);
      }
      if (c + 1 < p_.key_chunks()) add_chunk(h, chunk, keys, state, work);
    });
  }

  // Adds what rows see inside their own chunk; they hold what they see before it, relative to
  // `before`.
  void add_inside(const Head& h, const Chunk& chunk, const FeatureRows& queries,
                  const FeatureRows& keys, real before, real* out, real* normalizer,
                  real* work) const {
    real *const weights = work + layout_.weights, *const rescale = work + layout_.rescale;
    real* const panels = work + layout_.packed_keys;
    pack_transposed(keys.data, chunk.keys, p_.features, keys.row, panels);
    RunningScales running(scales_of(h, chunk, work), before, work + layout_.scales);
    for (int64_t first = 0; first < chunk.rows; first += LinearProblem::kChunkStrip) {
      const int64_t count = std::min(LinearProblem::kChunkStrip, chunk.rows - first),
                    seen = chunk.visible(p_, first + count - 1);
      product(count, seen, p_.features, queries.left(first), packed(panels, p_.features), weights,
              p_.chunk());
      mask_strip(chunk, running, before, {first, first + count}, weights, rescale, normalizer);
      add_product(count, p_.dim, seen, {weights, p_.chunk()}, {values_of(h, chunk), p_.dim},
                  out + first * p_.dim, p_.dim, rescale);
      count_flops(2 * static_cast<double>(count * seen * (p_.features + p_.dim)));
    }
  }

  // Weights of the rows of a strip: scaled, 0 where masked, and added to their normalizers.
  void mask_strip(const Chunk& chunk, RunningScales& running, real before, Span strip,
                  real* weights, real* rescale, real* normalizer) const {
    const Mark mark(Part::masks);
    const int64_t seen = chunk.visible(p_, strip.end - 1);
    for (int64_t i = strip.begin; i < strip.end; ++i, weights += p_.chunk(), ++rescale) {
      *rescale = scale_between(before, running.advance(chunk.visible(p_, i)));
      running.apply(weights, seen);
      normalizer[i] = normalizer[i] * *rescale + sum_in_row(weights, seen);
    }
  }

  const LinearProblem& p_;
  LinearSaved& s_;
  const Layout layout_;
  const bool keep_;
};

}  // namespace

Var linear_attention(const Var& q, const Var& k, const Var& v, const LinearOptions& options) {
  const LinearProblem p = problem_of(q, k, v, options);
  const bool keep = recording({q, k, v});
  LinearSaved saved{.q = q.value(), .k = k.value(), .v = v.value()};
  saved.out = Tensor(saved.q.shape().with(3, p.dim));
  saved.log_scale = options.log_scale;
  if (keep) {
    saved.normalizer = Tensor({p.total_heads(), p.q_len});
    if (p.map.has_log_scale()) saved.log_scale = Tensor({p.batch, p.heads, p.kv_len});
    if (!p.causal) saved.states = Tensor({p.total_heads(), p.state_reals()});
  }
  if (p.causal && p.offset() < 0) {  // the first queries see nothing and belong to no chunk
    saved.out.fill(0);
    if (keep) saved.normalizer.fill(0);
  }
  LinearForward(p, saved, keep).run();
  count_bytes(
      static_cast<double>(sizeof(real)) *
      static_cast<double>(saved.q.size() + saved.k.size() + saved.v.size() + saved.out.size()));
  if (!keep) return Var(saved.out);
  return custom_op(saved.out, {q, k, v},
                   [p, saved](const Tensor& grad_out, std::span<Tensor> grads) {
                     linear_backward(p, saved, grad_out, grads);
                   });
}

int64_t linear_workspace(const LinearProblem& problem) { return Layout(problem).parts.total(); }

}  // namespace attn
