// Elementwise ops, one pass over memory each. A backward saves the tensor from which its derivative
// is cheapest, the input or the output. It overwrites the incoming gradient if that is unshared.
#include <algorithm>
#include <cmath>

#include "core/autograd/tape.h"
#include "core/ops/ops.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

Tensor reuse(const Tensor& gradient) {
  return gradient.unshared() ? gradient : Tensor(gradient.shape());
}

// out[i] = f(x[i])
template <class F>
Tensor map1(const Tensor& x, Tensor out, F f) {
  over_range(x.size(), 1, [&](int64_t begin, int64_t end) {
    const real* from = x.data();
    real* to = out.data();
    ATTN_INDEPENDENT
    for (int64_t i = begin; i < end; i++) to[i] = f(from[i]);
  });
  return out;
}

// out[i] = f(x[i], y[i])
template <class F>
Tensor map2(const Tensor& x, const Tensor& y, Tensor out, F f) {
  over_range(x.size(), 1, [&](int64_t begin, int64_t end) {
    const real *first = x.data(), *second = y.data();
    real* to = out.data();
    ATTN_INDEPENDENT
    for (int64_t i = begin; i < end; i++) to[i] = f(first[i], second[i]);
  });
  return out;
}

// out = f of each stretch: f(count, from, to), one of row_ops.h
template <class F>
Tensor map_rows(const Tensor& x, Tensor out, F f) {
  over_range(x.size(), 8, [&](int64_t begin, int64_t end) {
    f(end - begin, x.data() + begin, out.data() + begin);
  });
  return out;
}

// `derivative(kept, g)` where kept is the input or the output.
enum class Keep { input, output };
template <class D>
Var recorded(const Var& a, const Tensor& y, Keep keep, D derivative) {
  const Tensor& x = a.value();
  return record_op(
      y, {&a, 1},
      [kept = keep == Keep::input ? x : y, derivative](Tensor g, std::span<GradSlot> in) {
        in[0].give(map2(kept, g, reuse(g), derivative));
      });
}

template <class F, class D>
Var unary(const Var& a, Keep keep, F f, D derivative) {
  return recorded(a, map1(a.value(), Tensor(a.shape()), f), keep, derivative);
}

// The same for an f of row_ops.h.
template <class F, class D>
Var unary_rows(const Var& a, F f, D derivative) {
  return recorded(a, map_rows(a.value(), Tensor(a.shape()), f), Keep::output, derivative);
}

// b holds one number for each row of a: the shape of a with a last dimension of 1.
bool is_column(const Shape& a, const Shape& b) {
  return b.rank() >= 1 && b.rank() == a.rank() && b == a.with(a.rank() - 1, 1);
}

// b is repeated over leading dimensions of a, or along its rows, or is a single element.
void require_broadcast(const char* name, const Shape& a, const Shape& b) {
  bool fits = b.rank() <= a.rank();
  for (int i = 1; fits && i <= b.rank(); i++) fits = a[-i] == b[-i];
  ATTN_CHECK(fits || b.size() == 1 || is_column(a, b), "{}: {} does not broadcast to {}", name,
             b.str(), a.str());
}

// out = f(a, b), b repeated.
template <class F>
Tensor map_broadcast(const Tensor& a, const Tensor& b, Tensor out, F f) {
  if (a.size() == b.size()) return map2(a, b, out, f);
  const real *x = a.data(), *y = b.data();
  real* to = out.data();
  if (b.size() == 1) return map1(a, out, [f, c = y[0]](real v) { return f(v, c); });
  if (is_column(a.shape(), b.shape())) {
    const int64_t n = a.dim(-1);
    over_range(b.size(), n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        const real c = y[row];
        ATTN_INDEPENDENT
        for (int64_t j = 0; j < n; j++) to[row * n + j] = f(x[row * n + j], c);
      }
    });
    return out;
  }
  const int64_t n = b.size();
  over_range(n ? a.size() / n : 0, n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) ATTN_INDEPENDENT
    for (int64_t j = 0; j < n; j++) to[row * n + j] = f(x[row * n + j], y[j]);
  });
  return out;
}

// Sums g over the repetitions of b, in double where b is one element.
Tensor reduce_to(const Shape& b, const Tensor& g) {
  if (g.size() == b.size()) return g.reshaped(b);
  Tensor out = Tensor::zeros(b);
  const int64_t n = b.size();
  if (n == 1) {
    double total = 0;
    for (int64_t i = 0; i < g.size(); i += 4096)
      total += static_cast<double>(sum_in_row(g.data() + i, std::min<int64_t>(4096, g.size() - i)));
    out[0] = static_cast<real>(total);
    return out;
  }
  if (is_column(g.shape(), b)) {
    const int64_t width = g.dim(-1);
    over_range(n, width, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++)
        out[row] = sum_in_row(g.data() + row * width, width);
    });
    return out;
  }
  const int64_t rows = n ? g.size() / n : 0;
  over_range(n, rows, [&](int64_t begin, int64_t end) {
    add_column_sums(out.data() + begin, g.data() + begin, rows, end - begin, n);
  });
  return out;
}

}  // namespace

Var add(const Var& a, const Var& b) {
  require_broadcast("add", a.shape(), b.shape());
  const Var inputs[] = {a, b};
  Tensor y =
      map_broadcast(a.value(), b.value(), Tensor(a.shape()), [](real p, real q) { return p + q; });
  return record_op(std::move(y), inputs, [](Tensor g, std::span<GradSlot> in) {
    if (in[1].needed()) in[1].give(reduce_to(in[1].shape(), g));
    if (in[0].needed()) in[0].give(std::move(g));
  });
}

Var subtract(const Var& a, const Var& b) {
  require_broadcast("subtract", a.shape(), b.shape());
  const Var inputs[] = {a, b};
  Tensor y =
      map_broadcast(a.value(), b.value(), Tensor(a.shape()), [](real p, real q) { return p - q; });
  return record_op(std::move(y), inputs, [](Tensor g, std::span<GradSlot> in) {
    if (in[1].needed()) {
      const Tensor total = reduce_to(in[1].shape(), g);
      in[1].give(map1(total, reuse(total), [](real v) { return -v; }));
    }
    if (in[0].needed()) in[0].give(std::move(g));
  });
}

Var multiply(const Var& a, const Var& b) {
  require_broadcast("multiply", a.shape(), b.shape());
  const Var inputs[] = {a, b};
  const auto product = [](real p, real q) { return p * q; };
  const Tensor x = a.value(), y = b.value();
  return record_op(map_broadcast(x, y, Tensor(x.shape()), product), inputs,
                   [x, y, product](Tensor g, std::span<GradSlot> in) {
                     if (in[1].needed())
                       in[1].give(reduce_to(in[1].shape(), map2(x, g, Tensor(g.shape()), product)));
                     if (in[0].needed()) in[0].give(map_broadcast(g, y, reuse(g), product));
                   });
}

Var divide(const Var& a, const Var& b) {
  require_broadcast("divide", a.shape(), b.shape());
  const Var inputs[] = {a, b};
  const auto ratio = [](real p, real q) { return p / q; };
  const Tensor y = b.value();
  const Tensor out = map_broadcast(a.value(), y, Tensor(a.shape()), ratio);
  return record_op(out, inputs, [y, out, ratio](Tensor g, std::span<GradSlot> in) {
    const Tensor da = map_broadcast(g, y, reuse(g), ratio);
    if (in[1].needed())
      in[1].give(reduce_to(
          in[1].shape(), map2(da, out, Tensor(da.shape()), [](real p, real q) { return -p * q; })));
    if (in[0].needed()) in[0].give(da);
  });
}

Var scale(const Var& a, double factor) {
  const auto times = [c = static_cast<real>(factor)](real v) { return v * c; };
  return record_op(
      map1(a.value(), Tensor(a.shape()), times), {&a, 1},
      [times](Tensor g, std::span<GradSlot> in) { in[0].give(map1(g, reuse(g), times)); });
}

Var shift(const Var& a, double offset) {
  const auto plus = [c = static_cast<real>(offset)](real v) { return v + c; };
  return record_op(map1(a.value(), Tensor(a.shape()), plus), {&a, 1},
                   [](Tensor g, std::span<GradSlot> in) { in[0].give(std::move(g)); });
}

Var exponential(const Var& a) {
  const auto exps = [](int64_t n, const real* x, real* to) { exp_row(n, x, 1, 0, to); };
  return unary_rows(a, exps, [](real y, real g) { return g * y; });
}

Var logarithm(const Var& a) {
  return unary(
      a, Keep::input, [](real x) { return std::log(x); }, [](real x, real g) { return g / x; });
}

Var square_root(const Var& a) {
  return unary(
      a, Keep::output, [](real x) { return std::sqrt(x); },
      [](real y, real g) { return real(0.5) * g / y; });
}

Var rsqrt(const Var& a) {
  return unary(
      a, Keep::output, [](real x) { return 1 / std::sqrt(x); },
      [](real y, real g) { return real(-0.5) * g * y * y * y; });
}

Var reciprocal(const Var& a) {
  return unary(
      a, Keep::output, [](real x) { return 1 / x; }, [](real y, real g) { return -g * y * y; });
}

Var square(const Var& a) {
  return unary(
      a, Keep::input, [](real x) { return x * x; }, [](real x, real g) { return 2 * x * g; });
}

Var relu(const Var& a) {
  return unary(
      a, Keep::output, [](real x) { return x < 0 ? real(0) : x; },
      [](real y, real g) { return y > 0 ? g : real(0); });
}

Var elu(const Var& a) {
  return unary_rows(a, elu_row, [](real y, real g) { return y > 0 ? g : g * (y + 1); });
}

Var gelu(const Var& a) {
  const Tensor& x = a.value();
  Tensor y(x.shape());
  const bool record = recording({&a, 1});
  const Tensor derivatives =
      record ? Tensor(x.shape()) : Tensor();  // Φ(x) + x·φ(x): known here, costly later
  over_range(x.size(), 8, [&](int64_t begin, int64_t end) {
    gelu_rows(1, end - begin, {x.data() + begin}, nullptr, {y.data() + begin},
              {record ? derivatives.data() + begin : nullptr}, true);
  });
  return record_op(std::move(y), {&a, 1}, [derivatives](Tensor g, std::span<GradSlot> in) {
    in[0].give(map2(derivatives, g, reuse(g), [](real d, real v) { return d * v; }));
  });
}

Var tanh(const Var& a) {
  return unary_rows(a, tanh_row, [](real y, real g) { return g * (1 - y * y); });
}

Var sigmoid(const Var& a) {
  return unary_rows(a, sigmoid_row, [](real y, real g) { return g * y * (1 - y); });
}

Var softplus(const Var& a) {
  return unary_rows(
      a, [](int64_t n, const real* x, real* to) { softplus_row(n, x, 1, 1, to); },
      [](real y, real g) { return -g * std::expm1(-y); });  // σ(x) = 1 - e^-softplus(x)
}

}  // namespace attn
