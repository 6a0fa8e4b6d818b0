// Figures that are no numbers never reach a row.
#include <gtest/gtest.h>

#include <limits>

#include "harness/cell/codec.h"

namespace attn::finite_figures_test {
namespace {

TEST(FiniteFigures, FiguresThatAreNotFiniteAreNoResult) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Json sound = {{"status", "ok"}, {"metrics", {{"test", 0.5}, {"bins", {1, 2.5}}}}};
  EXPECT_EQ(with_finite_figures(sound, Status::diverged), sound);
  Json broken = sound;
  broken["metrics"]["test"] = kNan;
  broken["samples"] = {{{"step", 1}, {"validation", nullptr}}};
  EXPECT_EQ(with_finite_figures(broken, Status::diverged),
            Json({{"status", "diverged"},
                  {"reason", "metrics.test is not a finite number"},
                  {"samples", broken["samples"]}}));
  broken["samples"][0]["step"] = kNan;
  EXPECT_FALSE(with_finite_figures(broken, Status::failed).contains("samples"));
  broken = sound;
  broken["metrics"]["bins"][1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(with_finite_figures(broken, Status::failed)["reason"],
            "metrics.bins[1] is not a finite number");
}

}  // namespace
}  // namespace attn::finite_figures_test
