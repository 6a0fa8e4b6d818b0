// Examples, shortcuts and text drawings of the pathfinder tasks; see snake_task.h.
#include "tasks/lra/snakes/snake_task.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/base/check.h"
#include "tasks/data/sources.h"
#include "tasks/lra/snakes/markers.h"
#include "tasks/shortcuts/fitted.h"

namespace attn::snakes {
namespace {

// Grey levels 0..1 become (grey − mean)/deviation; measured at side 32, contour 14.
constexpr double kMean = 0.104, kDeviation = 0.221;
constexpr int kGreyLevels = 256;
constexpr int64_t kCoarseGrid = 16;  // squares along an edge that the linear score sees

Example example_of(std::span<const uint8_t> grey, int32_t label, bool tokens) {
  Example e{.target = {label}};
  for (const uint8_t level : grey)
    if (tokens)
      e.tokens.push_back(level + 1);
    else
      e.values.push_back(static_cast<float>((level / 255.0 - kMean) / kDeviation));
  return e;
}

}  // namespace

SnakeTask::SnakeTask(const Params& p)
    : Task(p),
      scenes_(settings_of(static_cast<int>(p.integer("side")),
                          static_cast<int>(p.integer("contour")),
                          static_cast<int>(p.integer("distractors")))),
      tokens_(p.text("inputs") == "tokens") {
  if (const std::string& folder = p.text("data"); !folder.empty())
    files_ = data::pathfinder_png(folder, p.integer("side"), p.integer("contour"),
                                  [tokens = tokens_](std::span<const uint8_t> grey, int32_t label) {
                                    return example_of(grey, label, tokens);
                                  });
}

TaskShape SnakeTask::do_shape() const {
  const int64_t side = scenes_.settings().side;
  return {.length = side * side, .vocab = tokens_ ? kGreyLevels + 1 : 0, .classes = 2};
}

Example SnakeTask::do_example(Rng& random) const {
  Scene scene = scenes_.draw(random);
  Example e = example_of(scene.grey, scene.label, tokens_);
  e.evidence = std::move(scene.evidence);
  const double dy = scene.markers[0].y - scene.markers[1].y;
  const double dx = scene.markers[0].x - scene.markers[1].x;
  e.slices = {{"marker_distance", std::sqrt(dy * dy + dx * dx)},
              {"distractors", static_cast<double>(scene.snakes.size() - 2)}};
  return e;
}

std::vector<uint8_t> SnakeTask::do_picture(const Example& e) const {
  std::vector<uint8_t> grey;
  for (const int32_t token : e.tokens) grey.push_back(static_cast<uint8_t>(token - 1));
  for (const float value : e.values) {
    const double level = (value * kDeviation + kMean) * 255;
    grey.push_back(static_cast<uint8_t>(std::clamp(std::floor(level + 0.5), 0.0, 255.0)));
  }
  return grey;
}

std::vector<Shortcut> SnakeTask::do_shortcuts(const std::vector<Example>& train,
                                              const std::vector<Example>& test) const {
  const int side = scenes_.settings().side;
  const auto markers = [&](const Example& e) {
    return find_markers(picture(e), side, scenes_.settings().marker_radius);
  };
  const auto distance = [&](const Example& e, size_t) {
    const std::array<Offset, 2> m = markers(e);
    const double dy = m[0].y - m[1].y, dx = m[0].x - m[1].x;
    return static_cast<int64_t>(32 * std::sqrt(dy * dy + dx * dx) / side);
  };
  const auto places = [&](const Example& e, size_t) {  // two cells of 5 × 5, in raster order
    const std::array<Offset, 2> m = markers(e);
    const auto cell = [&](Offset p) { return int64_t{p.y * 5 / side * 5 + p.x * 5 / side}; };
    return std::min(cell(m[0]), cell(m[1])) * 25 + std::max(cell(m[0]), cell(m[1]));
  };
  const auto grey = [&](const Example& e, size_t) {
    int64_t sum = 0;
    for (const uint8_t level : picture(e)) sum += level;
    return sum / (int64_t{side} * side);
  };
  return {{"markers' distance", lookup_score(train, test, distance)},
          {"markers' places", lookup_score(train, test, places)},
          {"mean grey level", lookup_score(train, test, grey)},
          {"linear pixels", linear_score(reduced_pictures(*this, train, kCoarseGrid),
                                         reduced_pictures(*this, test, kCoarseGrid), 2)}};
}

std::string SnakeTask::do_draw(const Example& e) const {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const std::vector<uint8_t> grey = picture(e);
  const auto side = static_cast<size_t>(scenes_.settings().side);
  std::string text;
  for (size_t p = 0; p < grey.size(); p++) {
    text.append(2, kShades[grey[p] * kShades.size() / kGreyLevels]);  // twice: characters are tall
    if ((p + 1) % side == 0) text += '\n';
  }
  return text + fmt::format("= {} ({})\n", e.target[0], e.target[0] == 1 ? "one snake" : "two");
}

std::vector<ParamSpec> snake_params(ParamSpec side) {
  return {
      std::move(side),
      {"contour", 14, "paddles of each long snake; 6 easy, 9 intermediate, 14 hard", 2, 30},
      {"distractors", -1, "short snakes beside them; -1: as many as the side's table says", -1, 64},
      {"inputs", {"tokens", "values"}, "an id for each grey level, or a real number a pixel"},
      {"data", std::vector<std::string>{""}, "folder of LRA's released images; empty: generated"},
      {"train_examples", 160000, "training set, repeated over epochs; LRA's size"}};
}

}  // namespace attn::snakes
