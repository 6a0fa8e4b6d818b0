// One softmax over the lists of all levels; see dilated_attention.h. Each level computes its own
// output and log-sum-exp, which are joined; the backward of each level uses the joined ones, so
// that the gradient is that of the joint softmax.
#include "variants/patterns/dilated_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "variants/patterns/block_lists.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

// A level beyond the first. Its groups are those of all heads of one batch entry, since offsets
// differ between heads: the sequence that is regrouped has heads·len rows.
struct Dilation {
  Regroup regroup;
  IndexList sizes;  // [batch · groups]: keys of each that are no padding
  SoftmaxProblem group;

  Dilation(const AttentionShape& s, const DilatedPattern& pattern, int64_t level,
           const std::vector<int64_t>& kv_lengths) {
    const int64_t len = s.kv_len, step = pattern.dilation(level);
    const int64_t each = std::max<int64_t>(1, std::min(pattern.length(level), len));
    const int64_t segments = (len + each - 1) / each;
    regroup = {.len = s.heads * len,
               .groups = s.heads * segments,
               .rows = (each + step - 1) / step,
               .from = {}};
    for (int64_t g = 0; g < regroup.groups; ++g)
      for (int64_t a = 0; a < regroup.rows; ++a) {
        const int64_t at = position(s, pattern, level, each, g, a);
        regroup.from.push_back(at < 0 ? -1 : g / segments * len + at);
      }
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t g = 0; g < regroup.groups; ++g) {
        const int64_t valid = kv_lengths.empty() ? len : kv_lengths[static_cast<size_t>(b)];
        int64_t size = 0;
        while (size < regroup.rows) {
          const int64_t at = position(s, pattern, level, each, g, size);
          if (at < 0 || at >= valid) break;
          ++size;
        }
        sizes.push_back(size);
      }
    group = {.batch = 1,
             .heads = 1,
             .q_len = regroup.rows,
             .kv_len = regroup.rows,
             .dim = s.head_dim,
             .value_dim = s.head_dim,
             .scale = 1 / std::sqrt(static_cast<double>(s.head_dim)),
             .causal = pattern.causal};
  }

  // Of row a of group g in its head; -1: there is none.
  static int64_t position(const AttentionShape& s, const DilatedPattern& pattern, int64_t level,
                          int64_t each, int64_t g, int64_t a) {
    const int64_t segments = (s.kv_len + each - 1) / each, first = g % segments * each;
    const int64_t at =
        first + pattern.offset(g / segments, s.heads, level) + a * pattern.dilation(level);
    return at < std::min(first + each, s.kv_len) ? at : -1;
  }

  Span all() const { return {0, static_cast<int64_t>(sizes.size())}; }
  int64_t chunk(int64_t arrays) const { return regroup.chunk(arrays, group.dim); }
  SoftmaxProblem part(Span which) const {
    SoftmaxProblem p = group;
    p.batch = which.end - which.begin;
    p.kv_lengths.assign(sizes.begin() + which.begin, sizes.begin() + which.end);
    return p;
  }

  void forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
               const Tensor& log_sum) const {
    in_chunks(all(), chunk(kForwardArrays), [&](Span which) {
      const Tensor gq = regroup.gather(q, which), gk = regroup.gather(k, which),
                   gv = regroup.gather(v, which), more(gq.shape()), sum({gq.dim(0), 1, gq.dim(2)});
      softmax_forward(part(which), gq, gk, gv, more, sum);
      join_rows(regroup, which, more, sum, 0, out, log_sum);
    });
  }

  void backward(const std::array<Tensor, 5>& saved, const Tensor& grad,
                std::span<Tensor> grads) const {
    grouped_backward(
        regroup, all(), [&](Span which) { return part(which); }, saved, grad, grads);
  }
};

struct Dilated {
  SoftmaxProblem near;  // level 0
  std::vector<Dilation, Recycled<Dilation>> far;

  Dilated(const AttentionShape& s, const DilatedPattern& pattern,
          const std::vector<int64_t>& kv_lengths) {
    near = {.batch = s.batch,
            .heads = s.heads,
            .q_len = s.kv_len,
            .kv_len = s.kv_len,
            .dim = s.head_dim,
            .value_dim = s.head_dim,
            .scale = 1 / std::sqrt(static_cast<double>(s.head_dim)),
            .causal = pattern.causal};
    near.kv_lengths.assign(kv_lengths.begin(), kv_lengths.end());
    if (pattern.segment < s.kv_len)
      near.pattern = block_lists(s.kv_len, pattern.segment, 1,
                                 [](int64_t, int64_t b, IndexList& list) { list.push_back(b); });
    for (int64_t level = 1; level < pattern.levels; ++level)
      far.emplace_back(s, pattern, level, kv_lengths);
  }
};

}  // namespace

int64_t DilatedPattern::dilation(int64_t level) const {
  int64_t power = 1;
  for (int64_t l = 0; l < level; ++l) power = std::min(power * ratio, kLongest);
  return power;
}

Var dilated_attention(const Var& q, const Var& k, const Var& v, const DilatedPattern& pattern,
                      const std::vector<int64_t>& kv_lengths) {
  const AttentionShape shape{q.dim(0), q.dim(1), q.dim(2), q.dim(2), q.dim(3)};
  const auto d =
      std::allocate_shared<const Dilated>(Recycled<Dilated>(), shape, pattern, kv_lengths);
  const Tensor out(q.shape()), log_sum({q.dim(0), q.dim(1), q.dim(2)});
  const std::array<Tensor, 5> saved = {q.value(), k.value(), v.value(), out, log_sum};
  softmax_forward(d->near, saved[0], saved[1], saved[2], out, log_sum);
  {
    const MemoryScope scope(Purpose::workspace);
    for (const Dilation& level : d->far) level.forward(saved[0], saved[1], saved[2], out, log_sum);
  }
  return custom_op(out, {q, k, v}, [d, saved](const Tensor& grad, std::span<Tensor> grads) {
    softmax_backward(d->near, saved[0], saved[1], saved[2], saved[3], saved[4], grad, grads);
    const MemoryScope scope(Purpose::workspace);
    for (const Dilation& level : d->far) level.backward(saved, grad, grads);
  });
}

Cost dilated_cost(const AttentionShape& shape, const DilatedPattern& pattern) {
  const Dilated d(shape, pattern, {});
  const double size = sizeof(real), dim = static_cast<double>(shape.head_dim),
               heads = static_cast<double>(shape.batch * shape.heads),
               rows = heads * static_cast<double>(shape.kv_len);
  const SoftmaxWork near = softmax_work(d.near);
  double flops = near.flops, backward = near.backward_flops, bytes = 4 * rows * dim,
         workspace = near.workspace_bytes;
  for (const Dilation& level : d.far) {
    const int64_t chunk = std::min(level.chunk(kForwardArrays), level.all().end);
    const SoftmaxWork work = softmax_work(level.part(level.all()));
    flops += work.flops;
    backward += work.backward_flops;
    const double read = static_cast<double>(level.all().end * level.regroup.rows);
    bytes += 5 * read * dim;  // q, k and v, and the output, which is changed
    workspace =
        std::max(workspace, size * static_cast<double>(chunk * level.regroup.rows) * (4 * dim + 1) +
                                softmax_work(level.part({0, chunk})).workspace_bytes);
  }
  return {
      .flops = flops,
      .backward_flops = backward,
      .bytes = size * bytes,
      .peak_bytes = size * rows * (dim + 1) + workspace,
      .state_bytes = size * 2 * heads * dim *
                     static_cast<double>(dilated_cache(pattern, shape.heads, shape.kv_len).slots)};
}

// Segments of a level divide those of the next: nothing before the longest one is seen again.
CacheLayout dilated_cache(const DilatedPattern& pattern, int64_t heads, int64_t capacity) {
  const int64_t longest = pattern.length(pattern.levels - 1), slots = std::min(capacity, longest);
  return {.slots = slots,
          .slot_of = [=](int64_t at) { return at % longest; },
          .visible_slots =
              [=](int64_t head, int64_t at) {
                const int64_t start = at / longest * longest;
                const int64_t own = at / pattern.segment * pattern.segment - start;
                std::vector<Slots> seen = {{own, at - start + 1}};
                for (int64_t level = 1; level < pattern.levels; ++level) {
                  const int64_t step = pattern.dilation(level), each = pattern.length(level);
                  const int64_t offset = pattern.offset(head % heads, heads, level);
                  if (at % each % step != offset) continue;
                  seen.push_back({at / each * each - start + offset, at - start + 1, step});
                }
                return seen;
              },
          .by_head = true};
}

}  // namespace attn
