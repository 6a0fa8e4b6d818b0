// Checks that every channel counts, and that batch entries, heads and queries are independent: the
// output of one does not change if the others change or are removed. Costs three forward passes per
// shape.
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "harness/check/variant_checks.h"

namespace attn {
namespace {

// The usual shapes, and one with 5 batch entries and 7 heads: a variant may keep a table that is
// too small.
std::vector<AttentionShape> with_many(const Subject& subject) {
  std::vector<AttentionShape> shapes = subject.shapes(ShapeKind::all);
  AttentionShape many{.batch = 5, .heads = 7, .q_len = 9, .kv_len = 9, .head_dim = 5};
  if (!subject.can_run(many)) many.causal = true;
  if (!subject.only && subject.can_run(many)) shapes.push_back(many);
  return shapes;
}

// Every second batch entry is padded to half of the length.
std::vector<int64_t> lengths_of(const AttentionShape& shape) {
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < shape.batch; b++)
    lengths.push_back(b % 2 == 0 ? shape.kv_len : (shape.kv_len + 1) / 2);
  return lengths;
}

}  // namespace

// Each channel of each head of what is read has an influence on the output, at head sizes with and
// without a remainder of vector loops.
void check_channels(const Subject& subject, Verdict& verdict) {
  const VariantInfo::Reads read = subject.info.read_by(subject.params);
  for (const int64_t head_dim : {16, 65, 129}) {
    AttentionShape shape{.batch = 1, .heads = 3, .q_len = 33, .kv_len = 33, .head_dim = head_dim};
    if (!subject.can_run(shape)) shape.causal = true;
    if (!subject.can_run(shape)) continue;
    const auto attention = subject.build(shape);
    const Gradients back = gradients_of(*attention, make_inputs(*attention, shape, 26),
                                        mask_of(shape), make_seed(shape, 27));
    const auto require_all = [&](const std::string& name, const Tensor& gradient, int64_t used) {
      if (largest(gradient) == 0) return;  // one visible key leaves queries and keys no influence
      const int64_t rows = gradient.dim(2), channels = gradient.dim(3);
      for (int64_t h = 0; h < shape.heads; h++)
        for (int64_t c = 0; c < used; c++) {
          double size = 0;
          for (int64_t i = 0; i < rows; i++)
            size += std::abs(static_cast<double>(gradient[(h * rows + i) * channels + c]));
          verdict.require(size > 0,
                          "channel {} of {} in head {} has gradients of {:.1e} ({}, {} channels)",
                          c, name, h, size, text(shape), channels);
        }
    };
    if (read.queries) require_all("q", back.q, head_dim);
    if (read.keys) require_all("k", back.k, head_dim);
    require_all("v", back.v, head_dim);
    for (size_t i = 0; i < back.gates.size(); i++) {
      const GateInput& gate = attention->gates()[i];
      require_all(gate.name, back.gates[i], gate.read ? gate.read(shape.kv_len) : gate.width);
    }
  }
}

void check_batch(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : with_many(subject)) {
    const auto attention = subject.build(shape);
    const Inputs x = make_inputs(*attention, shape, 21);
    std::vector<int64_t> lengths;
    if (subject.info.traits.padding) lengths = lengths_of(shape);
    const Tensor together = output_of(*attention, x, mask_of(shape, lengths));
    for (int64_t b = 0; b < shape.batch; b++) {
      std::vector<int64_t> own;
      if (!lengths.empty()) own = {lengths[static_cast<size_t>(b)]};
      const Tensor alone = output_of(*attention, part(x, 0, b, b + 1), mask_of(shape, own));
      const Gap moved = gap(part(together, 0, b, b + 1), alone);
      verdict.expect(moved.size, tolerance(shape.kv_len),
                     "row {} of batch entry {} is off by {:.1e} against that entry alone ({})",
                     moved.row, b, moved.size, text(shape));
    }
  }
}

void check_heads(const Subject& subject, Verdict& verdict) {
  if (subject.info.heads_meet && subject.info.heads_meet(subject.params))
    return verdict.skip("heads meet with these parameters");
  for (const AttentionShape& shape : with_many(subject)) {
    const auto attention = subject.build(shape);
    const Inputs x = make_inputs(*attention, shape, 22),
                 other = make_inputs(*attention, shape, 23, 3);
    const Tensor base = output_of(*attention, x, mask_of(shape));
    for (int64_t h = 0; h < shape.heads; h++) {
      const auto replaced = [&](const Tensor& from, const Tensor& by) {
        const Tensor result = from.clone();
        const int64_t matrix = from.dim(2) * from.dim(3);
        for (int64_t i = 0; i < from.size(); i++)
          if (i / matrix % shape.heads != h) result[i] = by[i];
        return result;
      };
      Inputs changed{replaced(x.q, other.q), replaced(x.k, other.k), replaced(x.v, other.v)};
      for (size_t i = 0; i < x.gates.size(); i++)
        changed.gates.push_back(replaced(x.gates[i], other.gates[i]));
      const Tensor out = output_of(*attention, changed, mask_of(shape));
      const Gap moved = gap(part(out, 1, h, h + 1), part(base, 1, h, h + 1));
      verdict.expect(moved.size, tolerance(shape.kv_len),
                     "row {} of head {} moved by {:.1e} when the other heads were changed ({})",
                     moved.row, h, moved.size, text(shape));
    }
  }
}

// The last queries alone, against all keys, give the last rows: cross-attention agrees with
// self-attention.
void check_queries(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::self)) {
    const auto attention = subject.build(shape);
    const Inputs x = make_inputs(*attention, shape, 24);
    const Tensor base = output_of(*attention, x, mask_of(shape));
    for (const int64_t count : {int64_t{1}, (shape.q_len + 1) / 2}) {
      AttentionShape fewer = shape;
      fewer.q_len = count;
      if (!subject.can_run(fewer)) continue;
      const int64_t first = shape.q_len - count;
      const Tensor out =
          output_of(*attention, {part(x.q, 2, first, shape.q_len), x.k, x.v}, mask_of(fewer));
      const Gap moved = gap(out, part(base, 2, first, shape.q_len));
      verdict.expect(moved.size, tolerance(shape.kv_len),
                     "row {} of the last {} queries alone is off by {:.1e} ({})", moved.row, count,
                     moved.size, text(shape));
    }
  }
}

// Each query of cross-attention alone, whatever its place, is answered as beside the others.
void check_rowwise(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all)) {
    AttentionShape one = shape;
    one.q_len = 1;
    if (shape.causal || !subject.can_run(one)) continue;
    const auto attention = subject.build(shape);
    const Inputs x = make_inputs(*attention, shape, 25);
    std::vector<std::vector<int64_t>> lengths = {{}};
    if (subject.info.traits.padding) lengths.push_back({shape.kv_len, (shape.kv_len + 1) / 2});
    for (const std::vector<int64_t>& valid : lengths) {
      const Tensor together = output_of(*attention, x, mask_of(shape, valid));
      for (const int64_t row : std::set<int64_t>{0, 1, shape.q_len / 2, shape.q_len - 1}) {
        if (row >= shape.q_len) continue;
        const Tensor alone = output_of(*attention, {part(x.q, 2, row, row + 1), x.k, x.v, x.gates},
                                       mask_of(one, valid));
        const double moved = gap(alone, part(together, 2, row, row + 1)).size;
        verdict.expect(moved, tolerance(shape.kv_len),
                       "the output of query {} differs by {:.1e} when it is computed without the "
                       "other queries ({}{})",
                       row, moved, text(shape), valid.empty() ? "" : ", padded");
      }
    }
  }
}

}  // namespace attn
