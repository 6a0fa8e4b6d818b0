// See budget.h.
#include "harness/verify/budget.h"

#include <chrono>

#include "harness/check/subject.h"
#include "harness/verify/chosen_rows.h"
#include "harness/verify/outputs.h"
#include "variants/api/forgetting.h"

namespace attn {
namespace {

constexpr int64_t kLeastLength = 2048;
constexpr double kQuadratic = 3.2;

double seconds_at(const SeenPass& seen, int64_t length, int64_t positions) {
  const ReferenceInputs inputs = reference_inputs(
      first_positions(seen, length), chosen_rows(length, positions, rng(1, "forecast")));
  const bool is_token = seen.out.dim(2) < seen.q.dim(2);
  const Forgetting* const forgetting = is_token ? as_forgetting(*seen.attention) : nullptr;
  const auto start = std::chrono::steady_clock::now();
  if (forgetting)
    forgetting->step_answers(inputs, DecodeSteps::after(length - 1, length, seen.q.dim(1)));
  else
    seen.variant->reference(inputs);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double seconds_of_forward(const SeenPass& seen, int64_t length) {
  const SeenPass part = first_positions(seen, length);
  const auto start = std::chrono::steady_clock::now();
  output_of(*part.attention, {part.q, part.k, part.v, part.gates}, {true, {}});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Time grows by 2 from the one length to the other where it is linear in them (a reference that
// skips rows), by 4 where it is quadratic.
double forecast(double sixteenth, double eighth) {
  return eighth * (eighth > kQuadratic * sixteenth ? 64 : 8);
}

}  // namespace

double forecast_of_reference(const SeenPass& seen, int64_t positions) {
  const int64_t n = seen.k.dim(2);
  if (n < kLeastLength) return 0;
  const double sixteenth = seconds_at(seen, n / 16, positions);
  return forecast(sixteenth, seconds_at(seen, n / 8, positions));
}

double forecast_of_forward(const SeenPass& seen) {
  const int64_t n = seen.k.dim(2);
  const double sixteenth = seconds_of_forward(seen, n / 16);
  return forecast(sixteenth, seconds_of_forward(seen, n / 8));
}

}  // namespace attn
