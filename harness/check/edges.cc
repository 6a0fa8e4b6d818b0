// Checks trait `edges`: a query attends to the keys of its list only, in forward and backward. A
// list of all keys equals no list, and keys in no list may have any finite value. Costs a dozen
// passes per shape.
#include <algorithm>
#include <cmath>

#include "harness/check/variant_checks.h"

namespace attn {
namespace {

std::shared_ptr<const Edges> every_edge(const AttentionShape& shape) {
  auto edges = std::make_shared<Edges>();
  for (int64_t r = 0; r < shape.batch * shape.q_len; r++) {
    edges->first.push_back(r * shape.kv_len);
    for (int32_t j = 0; j < shape.kv_len; j++) edges->keys.push_back(j);
  }
  edges->first.push_back(std::ssize(edges->keys));
  return edges;
}

// Positions of batch entry 0 that no list names: `change(element)` on their keys and values.
template <class Change>
void on_hidden(const Tensor& t, const Change& change) {
  const int64_t len = t.dim(2), dim = t.dim(3);
  for (int64_t i = 0; i < t.dim(1) * len * dim; i++)
    if (is_without_edge(i / dim % len)) change(t[i]);
}

void compare_with_none(const Attention& attention, const AttentionShape& shape,
                       const std::vector<int64_t>& lengths, Verdict& verdict) {
  const Inputs x = make_inputs(attention, shape, 62);
  const Tensor seed = make_seed(shape, 63);
  Mask mask = mask_of(shape, lengths);
  const Gradients none = gradients_of(attention, x, mask, seed);
  mask.edges = every_edge(shape);
  const Gradients all = gradients_of(attention, x, mask, seed);
  const Gap moved = gap(all.output, none.output);
  verdict.expect(moved.size, tolerance(shape.kv_len),
                 "row {} is off by {:.1e} with every edge, against none given ({}{})", moved.row,
                 moved.size, text(shape), lengths.empty() ? "" : ", padded");
  const double grad = gap_of_inputs(all, none);
  verdict.expect(grad, 10 * tolerance(shape.kv_len),
                 "gradients are off by {:.1e} with every edge, against none given ({}{})", grad,
                 text(shape), lengths.empty() ? "" : ", padded");
}

// The same variant with parameters that let it see all keys: some variants draw edges of their own
// when none are given.
Subject seeing_all(const Subject& subject, const AttentionShape& shape) {
  const auto limit = subject.info.limit ? subject.info.limit(shape) : std::nullopt;
  return {subject.info, limit ? subject.info.at_limit(subject.given, *limit) : subject.given,
          subject.level};
}

void garbage_in_hidden(const Attention& attention, const AttentionShape& shape,
                       const std::vector<int64_t>& lengths, Verdict& verdict) {
  const Inputs x = make_inputs(attention, shape, 64);
  const Tensor seed = make_seed(shape, 65);
  Mask mask = mask_of(shape, lengths);
  mask.edges = some_edges(shape);
  const Gradients base = gradients_of(attention, x, mask, seed);
  for (const double scale : {1.0, 1e3}) {
    const Inputs changed = x.clone();
    Rng random = rng(66, "hidden");
    for (const Tensor& t : changed.of_keys())
      on_hidden(t, [&](real& value) { value = static_cast<real>(scale * random.normal()); });
    const Gradients other = gradients_of(attention, changed, mask, seed);
    const Gap moved = gap(other.output, base.output);
    verdict.expect(moved.size, tolerance(shape.kv_len),
                   "row {} moved by {:.1e} when keys without an edge held {:g} × N(0,1) ({})",
                   moved.row, moved.size, scale, text(shape));
    const double grad = gap_of_inputs(other, base);
    verdict.expect(grad, 10 * tolerance(shape.kv_len),
                   "gradients moved by {:.1e} when keys without an edge held {:g} × N(0,1) ({})",
                   grad, scale, text(shape));
    double leak = 0;
    for (const Tensor& t : other.of_keys())
      on_hidden(t, [&](real value) { leak = worst({leak, std::abs(static_cast<double>(value))}); });
    verdict.expect(leak, tolerance(shape.kv_len),
                   "keys without an edge got a gradient of {:.1e} ({})", leak, text(shape));
  }
}

void without_any(const Attention& attention, const AttentionShape& shape, Verdict& verdict) {
  auto none = std::make_shared<Edges>();
  none->first.assign(static_cast<size_t>(shape.batch * shape.q_len + 1), 0);
  Mask mask = mask_of(shape);
  mask.edges = none;
  const Inputs x = make_inputs(attention, shape, 67);
  const Gradients back = gradients_of(attention, x, mask, make_seed(shape, 68));
  const double size = worst({largest(back.output), largest_of_inputs(back)});
  verdict.expect(size, 0, "an output or gradient of {:.1e} where no query has an edge ({})", size,
                 text(shape));
}

}  // namespace

void check_edges(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all)) {
    const auto attention = subject.build(shape),
               everything = seeing_all(subject, shape).build(shape);
    std::vector<std::vector<int64_t>> lengths = {{}};
    if (subject.info.traits.padding) lengths.push_back({shape.kv_len, (shape.kv_len + 1) / 2});
    for (const std::vector<int64_t>& valid : lengths) {
      compare_with_none(*everything, shape, valid, verdict);
      garbage_in_hidden(*attention, shape, valid, verdict);
    }
    without_any(*attention, shape, verdict);
  }
}

}  // namespace attn
