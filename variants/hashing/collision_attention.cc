// Collisions of sign hashes, forward and backward; see collision_attention.h. Parallel over heads.
// Of each hash, queries and keys are sorted by bucket; keys of a bucket are added in order of their
// positions, so that a causal query reads the keys before it.
#include "variants/hashing/collision_attention.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/row_ops.h"
#include "variants/hashing/bucket_lists.h"
#include "variants/hashing/row_sums.h"

namespace attn {
namespace {

// What the passes of one head read and add to; rows are `dim` numbers apart.
struct Head {
  const real *v = nullptr, *grad = nullptr, *unit_q = nullptr, *unit_k = nullptr;
  real *out = nullptr, *grad_q = nullptr, *grad_k = nullptr, *grad_v = nullptr;
  int64_t dim = 0, shift = 0;  // a causal query i sees the keys up to i + shift
  bool causal = false;
  real share = 1, slope = 0;  // 1 / hashes, bits / 2 / hashes

  bool sees(const Bucket& b, int64_t query, int64_t key) const {
    return !causal || b.keys[key] <= b.queries[query] + shift;
  }
  // How many keys of the bucket the query sees, which are its first ones; it sees the first `from`.
  int64_t seen(const Bucket& b, int64_t query, int64_t from) const {
    if (!causal) return b.key_count;
    while (from < b.key_count && sees(b, query, from)) ++from;
    return from;
  }
};

void read_bucket(const Head& x, const Bucket& b, real* sum) {
  std::fill_n(sum, x.dim, real(0));
  int64_t added = 0;
  for (int64_t i = 0; i < b.query_count; ++i) {
    for (const int64_t seen = x.seen(b, i, added); added < seen; ++added)
      add_row(sum, x.share, x.v + b.keys[added] * x.dim, x.dim);
    add_row(x.out + b.queries[i] * x.dim, 1, sum, x.dim);
  }
}

// The gradient of values: a key reads the gradients of the queries that see it, added from the last
// one on.
void value_gradient(const Head& x, const Bucket& b, real* sum) {
  std::fill_n(sum, x.dim, real(0));
  int64_t left = b.query_count;
  for (int64_t j = b.key_count; j-- > 0;) {
    while (left > 0 && x.sees(b, left - 1, j))
      add_row(sum, x.share, x.grad + b.queries[--left] * x.dim, x.dim);
    add_row(x.grad_v + b.keys[j] * x.dim, 1, sum, x.dim);
  }
}

// Pair by pair: 6·dim FLOPs each.
void pair_gradients(const Head& x, const Bucket& b) {
  int64_t pairs = 0, seen = 0;
  for (int64_t i = 0; i < b.query_count; ++i) {
    seen = x.seen(b, i, seen);
    const int64_t query = b.queries[i] * x.dim;
    for (int64_t j = 0; j < seen; ++j) {
      const int64_t key = b.keys[j] * x.dim;
      const real slope = x.slope * row_dot(x.grad + query, x.v + key, x.dim);
      if (x.grad_q) add_row(x.grad_q + query, slope, x.unit_k + key, x.dim);
      if (x.grad_k) add_row(x.grad_k + key, slope, x.unit_q + query, x.dim);
    }
    pairs += seen;
  }
  count_flops(
      2 * static_cast<double>(pairs * x.dim * (1 + (x.grad_q != nullptr) + (x.grad_k != nullptr))));
}

// to += by·matrix, a row of `dim` numbers times a matrix [dim, dim].
void add_product_of(real* to, const real* by, const real* matrix, int64_t dim) {
  for (int64_t c = 0; c < dim; ++c) add_row(to, by[c], matrix + c * dim, dim);
}
void add_outer(real* matrix, real factor, const real* left, const real* right, int64_t dim) {
  for (int64_t c = 0; c < dim; ++c) add_row(matrix + c * dim, factor * left[c], right, dim);
}

// By sums of outer products v·kᵀ and g·qᵀ [dim, dim]: 4·dim² FLOPs a row, for large buckets.
void state_gradients(const Head& x, const Bucket& b, real* state) {
  const int64_t d = x.dim;
  int64_t rows = 0;
  if (x.grad_q) {
    std::fill_n(state, d * d, real(0));
    int64_t added = 0;
    for (int64_t i = 0; i < b.query_count; ++i) {
      for (const int64_t seen = x.seen(b, i, added); added < seen; ++added)
        add_outer(state, x.slope, x.v + b.keys[added] * d, x.unit_k + b.keys[added] * d, d);
      add_product_of(x.grad_q + b.queries[i] * d, x.grad + b.queries[i] * d, state, d);
    }
    rows += b.query_count + added;
  }
  if (x.grad_k) {
    std::fill_n(state, d * d, real(0));
    int64_t left = b.query_count;
    for (int64_t j = b.key_count; j-- > 0;) {
      while (left > 0 && x.sees(b, left - 1, j)) {
        --left;
        add_outer(state, x.slope, x.grad + b.queries[left] * d, x.unit_q + b.queries[left] * d, d);
      }
      add_product_of(x.grad_k + b.keys[j] * d, x.v + b.keys[j] * d, state, d);
    }
    rows += b.key_count + b.query_count - left;
  }
  count_flops(2 * static_cast<double>(rows * d * d));
}

void gradients(const Head& x, const Bucket& b, real* work) {
  if (x.grad_v) value_gradient(x, b, work);
  if (!x.grad_q && !x.grad_k) return;
  if (3 * b.query_count * b.key_count <= 2 * (b.query_count + b.key_count) * x.dim)
    return pair_gradients(x, b);
  state_gradients(x, b, work);
}

struct Sizes {
  int64_t heads, q_len, kv_len, dim;
};

// pass(head, bucket, workspace) for every bucket of every head that has queries and keys.
template <class MakeHead, class Pass>
void for_buckets(const Sizes& s, int64_t all, const Tensor& q, const Tensor& k,
                 const Tensor& planes, const CollisionOptions& options,
                 const std::vector<int64_t>& lengths, int64_t reals, const MakeHead& make,
                 const Pass& pass) {
  const int64_t room = BucketLists::room_reals(s.q_len, s.kv_len, s.dim, options.bits);
  run_tasks(all, room + padded_reals(reals), [&](int64_t head, real* work) {
    const SignHashes hashes(planes, head % s.heads, options.bits, options.longest);
    const int64_t valid = lengths.empty() ? s.kv_len : lengths[static_cast<size_t>(head / s.heads)];
    BucketLists lists(hashes, q.data() + head * s.q_len * s.dim, s.q_len,
                      k.data() + head * s.kv_len * s.dim, valid, work);
    const Head one = make(head);
    for (int64_t hash = 0; hash < hashes.hashes; ++hash) {
      lists.sort(hash);
      const Mark mark(Part::sums);
      for (int64_t code = 0; code < hashes.buckets(); ++code)
        if (const Bucket b = lists.bucket(code); b.query_count > 0 && b.key_count > 0)
          pass(one, b, work + room);
    }
  });
}

}  // namespace

Var collision_attention(const Tensor& q, const Tensor& k, const Var& unit_q, const Var& unit_k,
                        const Var& v, const Tensor& planes, const CollisionOptions& options,
                        const Mask& mask) {
  ATTN_CHECK(k.shape() == q.shape().with(2, k.dim(2)) && v.shape() == k.shape() &&
                 planes.dim(0) == q.dim(1) && planes.dim(2) == q.dim(3),
             "collisions: q {}, k {}, v {} and planes {} do not fit", q.shape().str(),
             k.shape().str(), v.shape().str(), planes.shape().str());
  const Sizes s{q.dim(1), q.dim(2), k.dim(2), q.dim(3)};
  const int64_t all = q.dim(0) * s.heads;
  const auto hashes = static_cast<real>(planes.dim(1) / options.bits);
  const Head same{.dim = s.dim,
                  .shift = s.kv_len - s.q_len,
                  .causal = mask.causal,
                  .share = 1 / hashes,
                  .slope = static_cast<real>(options.bits) / 2 / hashes};
  const Tensor vt = v.value(), out = Tensor::zeros(q.shape());
  for_buckets(
      s, all, q, k, planes, options, mask.kv_lengths, s.dim,
      [&](int64_t head) {
        Head x = same;
        x.v = vt.data() + head * s.kv_len * s.dim;
        x.out = out.data() + head * s.q_len * s.dim;
        return x;
      },
      read_bucket);
  const auto backward = [=, lengths = mask.kv_lengths, uq = unit_q.value(), uk = unit_k.value()](
                            const Tensor& grad, std::span<Tensor> grads) {
    const auto at = [](const Tensor& t, int64_t row) {
      return t.defined() ? t.data() + row * t.dim(3) : nullptr;
    };
    for_buckets(
        s, all, q, k, planes, options, lengths, s.dim * s.dim,
        [&](int64_t head) {
          Head x = same;
          const int64_t query = head * s.q_len, key = head * s.kv_len;
          x.v = at(vt, key), x.grad = at(grad, query), x.unit_q = at(uq, query);
          x.unit_k = at(uk, key), x.grad_q = at(grads[0], query), x.grad_k = at(grads[1], key);
          x.grad_v = at(grads[2], key);
          return x;
        },
        gradients);
  };
  return custom_op(out, {unit_q, unit_k, v}, backward);
}

Cost collision_cost(const AttentionShape& s, int64_t hashes, int64_t bits) {
  const auto heads = static_cast<double>(s.batch * s.heads), d = static_cast<double>(s.head_dim),
             q = static_cast<double>(s.q_len), kv = static_cast<double>(s.kv_len),
             m = static_cast<double>(hashes), size = double{sizeof(real)};
  const int64_t room =
      BucketLists::room_reals(s.q_len, s.kv_len, s.head_dim, bits) + padded_reals(s.head_dim);
  const auto work = static_cast<double>(workspace_bytes(s.batch * s.heads, room));
  return {.flops = 2 * heads * m * static_cast<double>(bits) * d * (q + kv),
          .bytes = size * heads * d * (4 * q + 2 * kv),
          .peak_bytes = size * heads * q * d + std::max(work, size * heads * q * d),
          .state_bytes = size * heads * m * static_cast<double>(int64_t{1} << bits) * d,
          .backward_depends_on_data = true};
}

}  // namespace attn
