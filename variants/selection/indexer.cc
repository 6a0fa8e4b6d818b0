// Projections of an indexer by the products of decoding and of the forward alike; see indexer.h.
#include "variants/selection/indexer.h"

#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kRows = 96;  // positions of a task
constexpr real kEpsilonOfNorm = real(1e-5);

void replace(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c, int64_t c_row) {
  product(rows, cols, depth, a, b, c, c_row);
}
void add_to(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c, int64_t c_row) {
  add_product(rows, cols, depth, a, b, c, c_row);
}

}  // namespace

Indexer::Indexer(const Tensor& query, const Tensor& key, const Tensor& weight)
    : query_(query),
      key_(key),
      weight_(weight),
      gain_(Tensor::full({key.dim(-1)}, 1)),
      bias_(Tensor::zeros({key.dim(-1)})) {}

double Indexer::query_flops() const {
  return 2 * static_cast<double>(parts() * key_.dim(-2) * heads() * (dim() + 1));
}
double Indexer::key_flops() const {
  return 2 * static_cast<double>(parts() * key_.dim(-2) * dim());
}

void Indexer::make_query(int64_t head, int64_t rows, const real* q, int64_t q_apart, real* to,
                         real* weights) const {
  const int64_t d = key_.dim(-2), all = heads() * dim();
  for (int64_t part = 0; part < parts(); ++part) {
    const int64_t own = is_shared() ? part : head % query_.dim(0);
    const auto add = part > 0 ? add_to : replace;
    add(rows, all, d, {q + part * q_apart, d}, {query_.data() + own * d * all, all}, to, all);
    add(rows, heads(), d, {q + part * q_apart, d}, {weight_.data() + own * d * heads(), heads()},
        weights, heads());
  }
  for (int64_t i = 0; i < rows * heads(); ++i) weights[i] += 1;
}

void Indexer::make_key(int64_t rows, const real* k, int64_t k_apart, int64_t group,
                       real* to) const {
  const int64_t d = key_.dim(-2);
  for (int64_t part = 0; part < parts(); ++part)
    (part > 0 ? add_to : replace)(rows, dim(), d, {k + part / group * k_apart, d},
                                  {key_.data() + part * d * dim(), dim()}, to, dim());
  layer_norm_rows(rows, dim(), to, gain_.data(), bias_.data(), kEpsilonOfNorm, to, nullptr);
}

IndexScores Indexer::scores(const Tensor& q, const Tensor& k,
                            const std::vector<int64_t>& lengths) const {
  if (heads() == 0) return {.q = q, .k = k, .weights = {}, .has_relu = false};
  const Mark mark(Part::selection);
  const MemoryScope scope(Purpose::workspace);
  const int64_t d = q.dim(3), n = q.dim(2), m = k.dim(2), choices_of = is_shared() ? 1 : q.dim(1);
  const Shape one{q.dim(0), choices_of, n, 1};
  const IndexScores made{.q = Tensor(one.with(3, heads() * dim())),
                         .k = Tensor(one.with(2, m).with(3, dim())),
                         .weights = Tensor(one.with(3, heads())),
                         .has_relu = true};
  const int64_t each = q.dim(1) / choices_of, query_tasks = (n + kRows - 1) / kRows,
                tasks = query_tasks + (m + kRows - 1) / kRows;
  run_tasks(made.choices() * tasks, 0, [&](int64_t task, real*) {
    const int64_t choice = task / tasks, part = task % tasks, head = choice * each;
    if (part < query_tasks) {
      const int64_t first = part * kRows, count = std::min(kRows, n - first);
      const int64_t at = choice * n + first;
      make_query(choice, count, q.data() + (head * n + first) * d, n * d,
                 made.q.data() + at * heads() * dim(), made.weights.data() + at * heads());
      count_flops(static_cast<double>(count) * query_flops());
      return;
    }
    const int64_t b = choice / choices_of, first = (part - query_tasks) * kRows;
    const int64_t length = lengths.empty() ? m : lengths[static_cast<size_t>(b)],
                  valid = std::min({kRows, m - first, length - first});
    if (valid <= 0) return;
    make_key(valid, k.data() + (head * m + first) * d, m * d, 1,
             made.k.data() + (choice * m + first) * dim());
    count_flops(static_cast<double>(valid) * key_flops());
  });
  return made;
}

IndexRows Indexer::rows() const {
  if (heads() == 0) return {};
  return {.heads = heads(),
          .dim = dim(),
          .has_relu = true,
          .key = [own = *this](int64_t, const real* k, real* to) { own.make_key(1, k, 0, 1, to); },
          .query = [own = *this](int64_t head, const real* q, real* to,
                                 real* weights) { own.make_query(head, 1, q, 0, to, weights); },
          .query_flops = query_flops(),
          .key_flops = key_flops()};
}

IndexStart::IndexStart(const std::string& name, uint64_t seed, int64_t attention_heads, int64_t d,
                       int64_t heads, int64_t dim, bool is_shared) {
  const int64_t parts = is_shared ? attention_heads : 1;
  const double deviation = 1 / std::sqrt(static_cast<double>(parts * d));
  key = Tensor::normal(is_shared ? Shape{parts, d, dim} : Shape{d, dim}, rng(seed, name + ".key"),
                       deviation);
  query = Tensor::normal({attention_heads, d, heads * dim}, rng(seed, name + ".query"), deviation);
  for (int64_t i = 0; i < query.size(); ++i) {
    const int64_t row = i / (heads * dim) % (parts * d), column = i % dim;
    query[i] = std::sqrt(real(0.5)) * (query[i] + key[row * dim + column]);
  }
  weight = Tensor::normal({attention_heads, d, heads}, rng(seed, name + ".weight"), deviation / 4);
}

Cost indexed_cost(const AttentionShape& s, int64_t keep, const Indexer& indexer) {
  Cost cost = top_cost(s, keep, indexer.heads(), indexer.dim(), indexer.is_shared());
  const int64_t choices = indexer.is_shared() ? s.batch : s.batch * s.heads;
  const auto rows = static_cast<double>(choices * s.kv_len), size = double{sizeof(real)};
  const double numbers =
      rows * static_cast<double>(indexer.heads() * (indexer.dim() + 1) + indexer.dim());
  cost.flops += rows * (indexer.query_flops() + indexer.key_flops());
  cost.bytes += size * 2 * numbers;
  cost.peak_bytes += size * numbers;
  const double index_keys = size * rows * static_cast<double>(indexer.dim());
  cost.state_bytes += index_keys;
  if (indexer.is_shared()) cost.sequence_state_bytes = index_keys;
  return cost;
}

}  // namespace attn
