// Projections of an indexer by the products of decoding and of the forward alike; see indexer.h.
#include "variants/selection/indexer.h"

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kRows = 96;  // positions of a task
constexpr real kEpsilonOfNorm = real(1e-5);

}  // namespace

Indexer::Indexer(const Tensor& query, const Tensor& key, const Tensor& weight)
    : query_(query),
      key_(key),
      weight_(weight),
      gain_(Tensor::full({key.dim(1)}, 1)),
      bias_(Tensor::zeros({key.dim(1)})) {}

double Indexer::query_flops() const {
  return 2 * static_cast<double>(key_.dim(0) * heads() * (dim() + 1));
}
double Indexer::key_flops() const { return 2 * static_cast<double>(key_.dim(0) * dim()); }

void Indexer::make_query(int64_t head, int64_t rows, const real* q, real* to, real* weights) const {
  const int64_t d = key_.dim(0), all = heads() * dim(), own = head % query_.dim(0);
  product(rows, all, d, {q, d}, {query_.data() + own * d * all, all}, to, all);
  product(rows, heads(), d, {q, d}, {weight_.data() + own * d * heads(), heads()}, weights,
          heads());
  for (int64_t i = 0; i < rows * heads(); ++i) weights[i] += 1;
}

void Indexer::make_key(int64_t rows, const real* k, real* to) const {
  const int64_t d = key_.dim(0);
  product(rows, dim(), d, {k, d}, {key_.data(), dim()}, to, dim());
  layer_norm_rows(rows, dim(), to, gain_.data(), bias_.data(), kEpsilonOfNorm, to, nullptr);
}

IndexScores Indexer::scores(const Tensor& q, const Tensor& k,
                            const std::vector<int64_t>& lengths) const {
  if (heads() == 0) return {.q = q, .k = k, .weights = {}, .has_relu = false};
  const Mark mark(Part::selection);
  const MemoryScope scope(Purpose::workspace);
  const IndexScores made{.q = Tensor(q.shape().with(3, heads() * dim())),
                         .k = Tensor(k.shape().with(3, dim())),
                         .weights = Tensor(q.shape().with(3, heads())),
                         .has_relu = true};
  const int64_t d = q.dim(3), n = q.dim(2), all = q.dim(0) * q.dim(1);
  const int64_t tasks = (n + kRows - 1) / kRows;
  run_tasks(all * tasks, 0, [&](int64_t task, real*) {
    const int64_t head = task / tasks, first = task % tasks * kRows, at = head * n + first;
    const int64_t count = std::min(kRows, n - first);
    make_query(head, count, q.data() + at * d, made.q.data() + at * heads() * dim(),
               made.weights.data() + at * heads());
    count_flops(static_cast<double>(count) * (query_flops() + key_flops()));
    const int64_t length = lengths.empty() ? n : lengths[static_cast<size_t>(head / q.dim(1))];
    const int64_t valid = std::min(count, length - first);
    if (valid > 0) make_key(valid, k.data() + at * d, made.k.data() + at * dim());
  });
  return made;
}

IndexRows Indexer::rows() const {
  if (heads() == 0) return {};
  return {.heads = heads(),
          .dim = dim(),
          .has_relu = true,
          .key = [own = *this](int64_t, const real* k, real* to) { own.make_key(1, k, to); },
          .query = [own = *this](int64_t head, const real* q, real* to,
                                 real* weights) { own.make_query(head, 1, q, to, weights); },
          .query_flops = query_flops(),
          .key_flops = key_flops()};
}

Cost indexed_cost(const AttentionShape& s, int64_t keep, const Indexer& indexer) {
  Cost cost = top_cost(s, keep, indexer.heads(), indexer.dim());
  const auto rows = static_cast<double>(s.batch * s.heads * s.kv_len), size = double{sizeof(real)};
  const double numbers =
      rows * static_cast<double>(indexer.heads() * (indexer.dim() + 1) + indexer.dim());
  cost.flops += rows * (indexer.query_flops() + indexer.key_flops());
  cost.bytes += size * 2 * numbers;
  cost.peak_bytes += size * numbers;
  cost.state_bytes += size * rows * static_cast<double>(indexer.dim());
  return cost;
}

}  // namespace attn
