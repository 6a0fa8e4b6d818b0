// Forward of linear attention, one chunk of features at a time. Not causal: the state of all keys,
// then the queries. Causal: one sweep over the chunks, with explicit weights inside a chunk.
// 4·n·m·(d+1) FLOPs, causal about 86·n·(m+d) more. A workspace holds one state and one chunk for
// any n.
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/span.h"
#include "core/simd/feature_rows.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"
#include "variants/features/forward_layout.h"
#include "variants/features/key_gates.h"
#include "variants/features/linear_chunks.h"

namespace attn {
namespace {

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
    RowFeatures queries, keys;
  };
  Head head_of(int64_t head, real* work) const {
    const RowFeatures queries(p_.map, p_.width, head % p_.heads, work + layout_.panels);
    return {head, queries, queries.of_keys(p_.map, head % p_.heads, work + layout_.key_panels)};
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
    return make_rows(p_, h.queries, s_.q, queries_at(p_, h.number, chunk), work + layout_.queries,
                     nullptr);
  }
  FeatureRows keys_of(const Head& h, const Chunk& chunk, real* work) const {
    real* const log_scale = scales_of(h, chunk, work);
    if (p_.gated)
      work[layout_.shift] =
          gate_scales(s_.gate.data() + h.number * p_.kv_len + chunk.key, chunk.keys, log_scale);
    return make_rows(p_, h.keys, s_.k, keys_at(p_, h.number, chunk), work + layout_.keys,
                     log_scale);
  }
  // What the gates of chunk c, whose keys were made last, add to M.
  real shift_of(const Head& h, int64_t c, const real* work) const {
    const real shift = work[layout_.shift];
    if (keep_) s_.shifts[h.number * p_.key_chunks() + c] = shift;
    return shift;
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
    add_to_state(p_, keys, {values, scales, scales}, chunk.keys, state);
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
      const real inverse = inverse_normalizer(normalizer[r], p_.map.divisor());
      real* const row = out + r * p_.dim;
      if (inverse == 0)
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
      for (int64_t r = 0; p_.floored() && r < chunk.rows; ++r)
        normalizer[r] = floored_normalizer(normalizer[r], state[p_.bound_at()]);
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
        if (state[p_.state_reals() - 1] != -kInfinity)
          add_state(chunk, queries, state, out, normalizer);
        else
          std::fill_n(normalizer, chunk.rows, real(0));  // and `out` is overwritten
        add_inside(h, chunk, queries, keys, state, out, normalizer, work);
        divide(chunk, out, normalizer);
      }
      if (c + 1 < p_.key_chunks()) add_chunk(h, chunk, keys, state, work);
      if (p_.gated) state[p_.state_reals() - 1] += shift_of(h, c, work);
    });
  }

  // Adds what rows see inside their own chunk; they hold what they see before it, relative to M of
  // the state before.
  void add_inside(const Head& h, const Chunk& chunk, const FeatureRows& queries,
                  const FeatureRows& keys, const real* before, real* out, real* normalizer,
                  real* work) const {
    real *const weights = work + layout_.weights, *const rescale = work + layout_.rescale;
    real* const panels = work + layout_.packed_keys;
    pack_transposed(keys.data, chunk.keys, p_.features, keys.row, panels);
    RunningScales running(scales_of(h, chunk, work), before[p_.state_reals() - 1],
                          work + layout_.scales);
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
  void mask_strip(const Chunk& chunk, RunningScales& running, const real* before, Span strip,
                  real* weights, real* rescale, real* normalizer) const {
    const Mark mark(Part::masks);
    const int64_t seen = chunk.visible(p_, strip.end - 1);
    for (int64_t i = strip.begin; i < strip.end; ++i, weights += p_.chunk(), ++rescale) {
      *rescale = scale_between(before[p_.state_reals() - 1], running.advance(chunk.visible(p_, i)));
      running.apply(weights, seen);
      normalizer[i] = normalizer[i] * *rescale + sum_in_row(weights, seen);
      if (p_.floored())
        normalizer[i] =
            floored_normalizer(normalizer[i], before[p_.bound_at()] * *rescale + running.sum());
    }
  }

  const LinearProblem& p_;
  LinearSaved& s_;
  const LinearForwardLayout layout_;
  const bool keep_;
};

}  // namespace

void linear_forward(const LinearProblem& problem, LinearSaved& saved, bool keep) {
  LinearForward(problem, saved, keep).run();
}

int64_t linear_workspace(const LinearProblem& problem) {
  return LinearForwardLayout(problem).parts.total();
}

}  // namespace attn
