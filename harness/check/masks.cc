// Checks of masks: future positions and padding have no influence in forward and backward, and a
// query without visible keys gets zeros. Costs a few dozen forward passes of at most 130 positions.
#include <algorithm>
#include <limits>
#include <set>

#include "harness/check/variant_checks.h"

namespace attn {
namespace {

// Seeds of 1 on rows [0, rows) and 0 below: what then reaches a later position came from a leak.
Tensor seed_of_rows(const AttentionShape& shape, int64_t rows) {
  Tensor seed = Tensor::full({shape.batch, shape.heads, shape.q_len, shape.head_dim}, 1);
  fill_from(seed, rows, real(0));
  return seed;
}

// Queries up to the key `last`.
int64_t rows_up_to(int64_t last, const AttentionShape& shape) {
  return std::min(shape.q_len, last + 1 - (shape.kv_len - shape.q_len));
}

void change_future(const Attention& attention, const AttentionShape& shape, const Inputs& inputs,
                   const Tensor& base, int64_t last, double scale, Verdict& verdict) {
  const int64_t rows = rows_up_to(last, shape);
  if (rows <= 0) return;
  const Inputs changed = inputs.clone();
  fill_from(changed.q, rows, scale, rng(11, "future q"));
  uint64_t index = 0;
  for (const Tensor& x : changed.of_keys())
    fill_from(x, last + 1, scale, rng(11, "future keys", index++));
  const Tensor out = output_of(attention, changed, mask_of(shape));
  const Gap moved = gap(part(out, 2, 0, rows), part(base, 2, 0, rows));
  verdict.expect(moved.size, tolerance(shape.kv_len),
                 "row {} moved by {:.1e} when keys after {} were changed ({:g} × N(0,1), {})",
                 moved.row, moved.size, last, scale, text(shape));
}

void perturb_future(const Attention& attention, const AttentionShape& shape, const Inputs& inputs,
                    const Tensor& base, int64_t last, double scale, Verdict& verdict) {
  const int64_t rows = rows_up_to(last, shape);
  if (rows <= 0) return;
  change_future(attention, shape, inputs, base, last, scale, verdict);
  const Gradients back = gradients_of(attention, inputs, mask_of(shape), seed_of_rows(shape, rows));
  double leak = rows < shape.q_len ? largest(part(back.q, 2, rows, shape.q_len)) : 0;
  for (const Tensor& gradient : back.of_keys())
    leak = worst({leak, largest(part(gradient, 2, last + 1, shape.kv_len))});
  verdict.expect(leak, tolerance(shape.kv_len),
                 "rows up to {} sent a gradient of {:.1e} to positions after {} ({})", rows - 1,
                 leak, last, text(shape));
}

// The first t positions alone give the same rows: nothing depends on the length.
void compare_prefixes(const Attention& attention, const AttentionShape& shape, const Inputs& inputs,
                      const Tensor& base, Verdict& verdict) {
  for (const int64_t t : std::set<int64_t>{1, 2, shape.kv_len / 2, 64, shape.kv_len - 1}) {
    if (t < 1 || t >= shape.kv_len) continue;
    const Tensor out = output_of(attention, part(inputs, 2, 0, t), mask_of(shape));
    const Gap moved = gap(out, part(base, 2, 0, t));
    verdict.expect(moved.size, tolerance(shape.kv_len),
                   "row {} of the first {} positions alone is off by {:.1e} ({})", moved.row, t,
                   moved.size, text(shape));
  }
}

void garbage_in_padding(const Attention& attention, const AttentionShape& shape,
                        const Inputs& inputs, const std::vector<int64_t>& lengths,
                        Verdict& verdict) {
  const auto padded = [&](double scale) {  // 0: NaN
    Inputs result = inputs.clone();
    for (int64_t b = 0; b < shape.batch; b++) {
      const int64_t from = lengths[static_cast<size_t>(b)];
      uint64_t index = 0;
      for (const Tensor& x : result.of_keys()) {
        if (scale > 0)
          fill_from(x, from, scale, rng(12, "padding", index++), b);
        else
          fill_from(x, from, std::numeric_limits<real>::quiet_NaN(), b);
      }
    }
    return result;
  };
  const Mask mask = mask_of(shape, lengths);
  const Tensor seed = seed_of_rows(shape, shape.q_len);
  const Gradients base = gradients_of(attention, inputs, mask, seed);
  for (const double scale : {3.0, 1e4, 0.0}) {
    const Gradients other = gradients_of(attention, padded(scale), mask, seed);
    const std::string what = scale > 0 ? fmt::format("{:g} × N(0,1)", scale) : "NaN";
    const Gap moved = gap(other.output, base.output);
    verdict.expect(moved.size, tolerance(shape.kv_len),
                   "row {} moved by {:.1e} when padding held {} ({}, lengths {}, {})", moved.row,
                   moved.size, what, text(shape), lengths[0], lengths[1]);
    const double grad = gap_of_inputs(other, base);
    verdict.expect(grad, 10 * tolerance(shape.kv_len),
                   "gradients moved by {:.1e} when padding held {} ({})", grad, what, text(shape));
    for (int64_t b = 0; b < shape.batch; b++) {
      const int64_t from = lengths[static_cast<size_t>(b)];
      if (from == shape.kv_len) continue;
      double leak = 0;
      for (const Tensor& gradient : other.of_keys())
        leak = worst({leak, largest(part(part(gradient, 0, b, b + 1), 2, from, shape.kv_len))});
      verdict.expect(leak, 0, "padding that held {} got a gradient of {:.1e} ({})", what, leak,
                     text(shape));
    }
  }
}

// Masking the end equals leaving it away.
void compare_with_shorter(const Attention& attention, const AttentionShape& shape,
                          const Inputs& inputs, int64_t length, Verdict& verdict) {
  if (length < 1 || length >= shape.kv_len) return;
  const Tensor masked = output_of(attention, inputs, mask_of(shape, {length, length}));
  const Tensor cut = output_of(attention, part(inputs, 2, 0, length), mask_of(shape));
  const Gap moved = gap(part(masked, 2, 0, length), cut);
  verdict.expect(moved.size, tolerance(shape.kv_len),
                 "row {} is off by {:.1e} when keys after {} are masked instead of left away ({})",
                 moved.row, moved.size, length - 1, text(shape));
}

// A padded position writes nothing and decays nothing: the state stays, so that equal queries in
// the padding get equal outputs.
void compare_rows_in_padding(const Attention& attention, const AttentionShape& shape,
                             const Inputs& inputs, int64_t length, Verdict& verdict) {
  const Inputs x = inputs.clone();
  const int64_t dim = shape.head_dim, n = shape.q_len;
  for (int64_t row = 0; row < x.q.size() / dim; row++)
    if (row % n > length)
      std::copy_n(x.q.data() + (row / n * n + length) * dim, dim, x.q.data() + row * dim);
  const Tensor out = output_of(attention, x, mask_of(shape, {length, length}));
  const Tensor first = part(out, 2, length, length + 1);
  for (int64_t i = length + 1; i < n; i++) {
    const double moved = gap(part(out, 2, i, i + 1), first).size;
    verdict.expect(moved, tolerance(shape.kv_len),
                   "the same query gets another output, by {:.1e}, at position {} than at {}, both "
                   "in the padding: a padded position changed the state ({})",
                   moved, i, length, text(shape));
  }
}

}  // namespace

void check_causality(const Subject& subject, Verdict& verdict) {
  const auto& rounds_with_all = subject.info.rounds_with_all;
  // A small weight on the future shows where the future is large. Where rounding grows with the
  // future, it would hide such a weight.
  const double scale = rounds_with_all && rounds_with_all(subject.params) ? 1 : 1e3;
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all)) {
    if (!shape.causal) continue;
    const auto attention = subject.build(shape);
    const Inputs inputs = make_inputs(*attention, shape, 1);
    const Tensor base = output_of(*attention, inputs, mask_of(shape));
    for (const int64_t last : std::set<int64_t>{0, shape.kv_len / 2, shape.kv_len - 2})
      if (last >= 0 && last < shape.kv_len - 1)
        perturb_future(*attention, shape, inputs, base, last, scale, verdict);
    // Between all neighbours: a leak may be between two positions alone.
    const int64_t step = shape.kv_len > 70 ? 7 : 1;
    for (int64_t last = 0; last < shape.kv_len - 1; last++)
      if (last % step == 0 || last % 64 == 63)  // the last one of a tile
        change_future(*attention, shape, inputs, base, last, 1, verdict);
    if (shape.q_len == shape.kv_len && !subject.info.traits.fixed_length)
      compare_prefixes(*attention, shape, inputs, base, verdict);
  }
}

void check_padding(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all)) {
    const int64_t n = shape.kv_len;
    if (n < 2) continue;
    const auto attention = subject.build(shape);
    const Inputs inputs = make_inputs(*attention, shape, 2);
    garbage_in_padding(*attention, shape, inputs, {n, n / 2}, verdict);
    garbage_in_padding(*attention, shape, inputs, {1, n - 1}, verdict);
    if (shape.q_len != n) continue;
    for (const int64_t length : std::set<int64_t>{1, n / 2, n - 1}) {
      compare_with_shorter(*attention, shape, inputs, length, verdict);
      if (subject.info.traits.gated)
        compare_rows_in_padding(*attention, shape, inputs, length, verdict);
    }
  }
}

void check_empty_rows(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all)) {
    const auto attention = subject.build(shape);
    const Inputs inputs = make_inputs(*attention, shape, 3);
    const Tensor seed = seed_of_rows(shape, shape.q_len);
    const auto finite = [&](const Gradients& back, const char* where) {
      double size = worst({largest(back.output), largest_of_inputs(back)});
      for (const Tensor& weight : back.weights) size += largest(weight);
      verdict.require(size < 1e30, "{} ({}): outputs and gradients reach {:.1e}", where,
                      text(shape), size);
    };
    if (subject.info.traits.padding) {
      for (const int64_t entry : {int64_t{0}, int64_t{1}}) {
        std::vector<int64_t> lengths = {shape.kv_len, shape.kv_len};
        lengths[static_cast<size_t>(entry)] = 0;
        const Gradients back = gradients_of(*attention, inputs, mask_of(shape, lengths), seed);
        const auto of_entry = [&](const Tensor& t) {
          return largest(part(t, 0, entry, entry + 1));
        };
        verdict.expect(of_entry(back.output), 0, "an output of {:.1e} where no key is valid ({})",
                       of_entry(back.output), text(shape));
        double grad = of_entry(back.q);
        for (const Tensor& gradient : back.of_keys()) grad += of_entry(gradient);
        verdict.expect(grad, 0, "a gradient of {:.1e} where no key is valid ({})", grad,
                       text(shape));
        finite(back, "beside a batch entry without keys");
      }
    }
    if (shape.causal && shape.q_len > shape.kv_len) {
      const Gradients back = gradients_of(*attention, inputs, mask_of(shape), seed);
      const int64_t rows = shape.q_len - shape.kv_len;
      const double size =
          largest(part(back.output, 2, 0, rows)) + largest(part(back.q, 2, 0, rows));
      verdict.expect(size, 0,
                     "output or gradient of {:.1e} in the first {} rows, which see no key ({})",
                     size, rows, text(shape));
      finite(back, "below rows that see no key");
    }
  }
}

}  // namespace attn
