// Forward of tiled softmax attention: 4·pairs·d FLOPs. A tile of queries visits pieces of keys,
// each packed once for the tile. The logits of a strip of queries stay in the second-level cache:
// of 48 where all see all keys of the piece, else of six. Parallel over batch × heads × tiles, and
// over the keys where tiles are too few. Keys that no query of a strip sees are never multiplied;
// padding is never read.
#include "variants/softmax/softmax_forward.h"

#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/softmax_rows.h"
#include "variants/softmax/forward_layout.h"
#include "variants/softmax/forward_storage.h"
#include "variants/softmax/softmax_merge.h"
#include "variants/softmax/softmax_tiles.h"

namespace attn {
namespace {

// The online softmax of one tile of queries.
template <class Storage>
class ForwardTile {
 public:
  using Element = typename Storage::Element;

  // `packed`: all keys of the head where they are packed ahead, else null. `sums`: the weighted
  // sums of values, [rows, value_dim]; those of a query that sees no key are left as they are.
  ForwardTile(const SoftmaxProblem& p, const Band& band, int64_t head, Span queries,
              const Element* q, const real* packed, real* sums, real* row_max, real* row_sum,
              const ForwardLayout& layout, real* work)
      : p_(p),
        band_(band),
        head_(head),
        queries_(queries),
        strip_(layout.strip),
        stride_(layout.stride),
        packed_(packed),
        sums_(sums),
        row_max_(row_max),
        row_sum_(row_sum),
        scores_(work + layout.scores),
        storage_(p, layout, work) {
    const Mark mark(Part::elementwise);
    const int64_t rows = queries.end - queries.begin;
    storage_.take_queries(q + queries.begin * p.dim, rows);
    std::fill_n(row_max_, rows, -kInfinity);
    std::fill_n(row_sum_, rows, real(0));
  }

  // The keys [piece.begin, piece.end) of k and v, at most a piece. Returns the pairs multiplied.
  double add(Span piece, const Element* k, const Element* v) {
    if (packed_)
      storage_.take_packed(packed_, piece.begin);
    else
      storage_.take_keys(k + piece.begin * p_.dim, piece.end - piece.begin);
    storage_.take_values(v + piece.begin * p_.value_dim, piece.end - piece.begin);
    double pairs = 0;
    for (int64_t i = queries_.begin; i < queries_.end; i += strip_) {
      const int64_t last = std::min(i + strip_, queries_.end);
      if (band_.covers({i, last}, piece))
        pairs += add_strip({i, last}, piece, piece.begin);
      else
        for (int64_t r = i; r < last; r += kForwardStrip)
          pairs += add_seen({r, std::min(r + kForwardStrip, last)}, piece);
    }
    return pairs;
  }

 private:
  double add_seen(Span queries, Span piece) {
    double pairs = 0;
    const auto add_run = [&](Span run) {
      const Span keys{std::max(piece.begin, run.begin), std::min(piece.end, run.end)};
      if (keys.begin < keys.end) pairs += add_strip(queries, keys, piece.begin);
    };
    // The piece is of a run of the pattern: only the band can mask more of it.
    visit_spans(band_, nullptr, 0, queries, add_run);
    return pairs;
  }

  double add_strip(Span queries, Span keys, int64_t first) {
    const int64_t rows = queries.end - queries.begin, at = queries.begin - queries_.begin;
    const int64_t skip = round_down(keys.begin - first, kPanel);  // logits begin at this column
    first += skip;
    const int64_t from = round_down(keys.begin - first, kRowMultiple);
    const int64_t to = round_up(keys.end - first, kRowMultiple);
    storage_.logits(at, rows, {from, to}, skip, scores_, stride_);
    if (p_.bias)
      p_.bias->add({head_, band_.position(queries.begin), rows, keys, stride_},
                   scores_ + (keys.begin - first));
    if (keys.begin > first + from || keys.end < first + to || !band_.covers(queries, keys))
      mask_outside_band(band_, queries.begin, rows, keys, first, from, to, scores_, stride_,
                        -kInfinity);
    real rescale[kForwardWideStrip];
    online_softmax_rows(rows, to - from, scores_ + from, stride_, row_max_ + at, row_sum_ + at,
                        rescale);
    storage_.add_values(
        {rows, {keys.begin - first, keys.end - first}, skip, scores_, stride_, rescale},
        sums_ + at * p_.value_dim);
    return static_cast<double>(rows * (keys.end - keys.begin));
  }

  const SoftmaxProblem& p_;
  const Band& band_;
  const int64_t head_;
  Span queries_;
  const int64_t strip_, stride_;
  const real* packed_;
  real *sums_, *row_max_, *row_sum_, *scores_;
  Storage storage_;
};

// The pieces of a tile's keys, numbered, so that parts can share them.
template <class Visit>
int64_t visit_pieces(const SoftmaxProblem& p, int64_t size, const Band& band, int64_t head,
                     Span queries, Visit&& visit) {
  int64_t number = 0;
  visit_spans(band, p.pattern.get(), head, queries, [&](Span span) {
    for (int64_t j = span.begin; j < span.end; j += size)
      visit(number++, Span{j, std::min(j + size, span.end)});
  });
  return number;
}

// out = sums / row_sum, and log_sum where it is wanted.
template <class Element>
void finish_rows(int64_t rows, int64_t dim, const real* row_max, const real* row_sum,
                 const real* sums, Element* out, real* log_sum) {
  const Mark mark(Part::softmax);
  for (int64_t r = 0; r < rows; ++r) {
    divide_row(dim, sums + r * dim, row_sum[r], out + r * dim);
    if (log_sum) log_sum[r] = row_sum[r] == 0 ? kInfinity : row_max[r] + std::log2(row_sum[r]);
  }
}

// The parts of a tile, each as ForwardDivision says, become the first of them.
void merge_parts(int64_t parts, int64_t rows, int64_t dim, real* part, int64_t stride) {
  const Mark mark(Part::softmax);
  const auto row_of = [=](real* sums, int64_t r) {
    return RowSums{sums + r * dim, sums[rows * dim + r], sums[rows * dim + rows + r]};
  };
  for (int64_t r = 0; r < rows; ++r) {
    RowSums all = row_of(part, r);
    for (int64_t s = 1; s < parts; ++s) merge_row(dim, row_of(part + s * stride, r), all);
    part[rows * dim + r] = all.row_max;
    part[rows * dim + rows + r] = all.row_sum;
  }
}

// Late tiles of a causal head cost more than early ones: taken from both ends in turn, every
// worker's share costs the same.
int64_t balanced(int64_t tile, int64_t tiles) { return tile % 2 ? tiles - 1 - tile / 2 : tile / 2; }

template <class Storage>
class Forward {
 public:
  using Array = typename Storage::Array;
  using Element = typename Storage::Element;

  Forward(const SoftmaxProblem& p, const Array& q, const Array& k, const Array& v, const Array& out,
          const Tensor& log_sum)
      : p_(p),
        division_(p),
        layout_(p, division_.tiles),
        q_(q),
        k_(k),
        v_(v),
        out_(out),
        log_sum_(log_sum) {}

  void run() {
    if (packs_ahead(p_)) pack_ahead();
    if (division_.parts == 1) {
      run_tasks(division_.tasks(), layout_.total,
                [&](int64_t task, real* work) { whole(task, work); });
      return;
    }
    const int64_t stride = division_.part_reals(p_.value_dim);
    const Block block(static_cast<size_t>(division_.tasks() * stride) * sizeof(real),
                      Purpose::workspace);
    real* const parts = static_cast<real*>(block.data());
    run_tasks(division_.tasks(), layout_.total,
              [&](int64_t task, real* work) { partial(task, parts + task * stride, work); });
    run_tasks(division_.tasks() / division_.parts, 0, [&](int64_t task, real*) {
      const auto [head, queries] = place(task);
      const int64_t rows = queries.end - queries.begin, at = head * p_.q_len + queries.begin;
      real* const first = parts + task * division_.parts * stride;
      merge_parts(division_.parts, rows, p_.value_dim, first, stride);
      const real* const row_max = first + rows * p_.value_dim;
      finish(at, rows, row_max, row_max + rows, first);
    });
  }

 private:
  int64_t packed_head() const { return packed_key_reals(p_, p_.kv_len); }

  void pack_ahead() {
    const int64_t heads = p_.batch * p_.heads, panels = (p_.kv_len + kPanel - 1) / kPanel;
    packed_ = Block(static_cast<size_t>(heads * packed_head()) * sizeof(real), Purpose::workspace);
    real* const all = static_cast<real*>(packed_.data());
    run_tasks(heads * panels, 0, [&](int64_t task, real*) {
      const int64_t head = task / panels, first = task % panels * kPanel;
      const int64_t count = std::min(kPanel, p_.band(head / p_.heads).length - first);
      if (count > 0)
        Storage::pack_keys(k_.data() + (head * p_.kv_len + first) * p_.dim, count, p_.dim,
                           all + head * packed_head() + packed_key_reals(p_, first));
    });
  }

  std::pair<int64_t, Span> place(int64_t task) const {  // its head, and the queries of its tile
    const int64_t tiles = division_.tiles.count();
    return {task / tiles, division_.tiles[balanced(task % tiles, tiles)]};
  }

  void finish(int64_t at, int64_t rows, const real* row_max, const real* row_sum,
              const real* sums) const {
    finish_rows(rows, p_.value_dim, row_max, row_sum, sums, out_.data() + at * p_.value_dim,
                log_sum_.defined() ? log_sum_.data() + at : nullptr);
  }

  void whole(int64_t task, real* work) const {
    const auto [head, queries] = place(task);
    const int64_t at = head * p_.q_len + queries.begin;
    real* const sums = Storage::sums_of_task(out_.data() + at * p_.value_dim, work + layout_.sums);
    real *const row_max = work + layout_.row_max, *const row_sum = work + layout_.row_sum;
    walk(head, queries, 0, sums, row_max, row_sum, work);
    finish(at, queries.end - queries.begin, row_max, row_sum, sums);
  }

  void partial(int64_t task, real* part, real* work) const {
    const auto [head, queries] = place(task / division_.parts);
    const int64_t rows = queries.end - queries.begin;
    real* const row_max = part + rows * p_.value_dim;
    std::fill(part, row_max, real(0));
    walk(head, queries, task % division_.parts, part, row_max, row_max + rows, work);
  }

  void walk(int64_t head, Span queries, int64_t part, real* sums, real* row_max, real* row_sum,
            real* work) const {
    if (queries.begin >= queries.end) return;
    const Band band = p_.band(head / p_.heads);
    const real* const packed = static_cast<const real*>(packed_.data());
    ForwardTile<Storage> tile(p_, band, head, queries, q_.data() + head * p_.q_len * p_.dim,
                              packed ? packed + head * packed_head() : nullptr, sums, row_max,
                              row_sum, layout_, work);
    const Element* const k = k_.data() + head * p_.kv_len * p_.dim;
    const Element* const v = v_.data() + head * p_.kv_len * p_.value_dim;
    const int64_t parts = division_.parts;
    const int64_t size = layout_.piece;
    const int64_t pieces = visit_pieces(p_, size, band, head, queries, [](int64_t, Span) {});
    double pairs = 0;
    visit_pieces(p_, size, band, head, queries, [&](int64_t number, Span piece) {
      if (number >= pieces * part / parts && number < pieces * (part + 1) / parts)
        pairs += tile.add(piece, k, v);
    });
    count_flops(2 * pairs * static_cast<double>(p_.dim + p_.value_dim));
  }

  const SoftmaxProblem& p_;
  ForwardDivision division_;
  ForwardLayout layout_;
  const Array &q_, &k_, &v_, &out_;
  const Tensor& log_sum_;
  Block packed_;  // [batch · heads] times all keys, where they are packed ahead
};

double numbers_moved(const auto&... arrays) { return static_cast<double>((arrays.size() + ...)); }

}  // namespace

void softmax_forward(const SoftmaxProblem& problem, const Tensor& q, const Tensor& k,
                     const Tensor& v, const Tensor& out, const Tensor& log_sum) {
  Forward<RealStorage>(problem, q, k, v, out, log_sum).run();
  count_bytes(static_cast<double>(sizeof(real)) * numbers_moved(q, k, v, out));
}

void softmax_forward(const SoftmaxProblem& problem, const BFloat16Tensor& q,
                     const BFloat16Tensor& k, const BFloat16Tensor& v, const BFloat16Tensor& out) {
  Forward<BFloat16Storage>(problem, q, k, v, out, Tensor()).run();
  count_bytes(static_cast<double>(sizeof(BFloat16)) * numbers_moved(q, k, v, out));
}

}  // namespace attn
