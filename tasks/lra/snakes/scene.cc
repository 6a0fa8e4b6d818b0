// Random scenes, their pixels, and the table of settings; see scene.h.
#include "tasks/lra/snakes/scene.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace attn::snakes {
namespace {

// Fewer than one attempt in ten thousand succeeds: no setting to work with.
constexpr int kProbes = 20'000;
constexpr int kMaxAttempts = 100 * kProbes;  // ends a search that cannot succeed
constexpr uint8_t kTouched = 64;  // a quarter of white: from here on a pixel belongs to a stroke

constexpr int kDistractorAttempts = 5;

std::optional<std::array<Snake, 2>> two_targets(Placement& placement, int attempts) {
  for (; attempts > 0; attempts--)
    if (auto pair = placement.targets()) return pair;
  return {};
}

}  // namespace

Scenes::Scenes(const Settings& s) : settings_(s) {
  for (const double margin : s.margins) paddles_.emplace_back(s, margin);
  const int reach = static_cast<int>(std::ceil(s.marker_radius)) + 3;  // the filter's
  Fine marker(2 * reach);
  marker.disc(2 * s.marker_radius);
  marker_ = marker.halved();
  Rng random = rng(0, "snakes/construction");
  for (const Paddles& paddles : paddles_) {
    Placement placement(settings_, paddles, random);
    ATTN_CHECK(two_targets(placement, kProbes),
               "two snakes of {} paddles find no room on {} x {} pixels in {} attempts; use a "
               "shorter contour or a longer side",
               s.contour, s.side, s.side, kProbes);
  }
}

Scene Scenes::draw(Rng& random) const {
  Scene scene;
  scene.label = random.coin();
  const Paddles& paddles = paddles_[random.below(paddles_.size())];
  scene.margin = paddles.margin();
  Placement placement(settings_, paddles, random);
  const auto pair = two_targets(placement, kMaxAttempts);
  ATTN_CHECK(pair, "no room for two snakes of {} paddles on {} x {} pixels", settings_.contour,
             settings_.side, settings_.side);
  scene.snakes.assign(pair->begin(), pair->end());
  for (int i = 0; i < settings_.distractors; i++)
    for (int attempt = 0; attempt < kDistractorAttempts; attempt++) {
      Snake snake = placement.distractor();
      if (snake.empty()) continue;
      scene.snakes.push_back(std::move(snake));
      break;
    }
  const size_t from = random.coin(), to = scene.label == 1 ? from : 1 - from;
  scene.markers = {scene.snakes[from].front().anchor, scene.snakes[to].back().anchor};
  paint(paddles, scene);
  return scene;
}

void Scenes::paint(const Paddles& paddles, Scene& scene) const {
  const int side = settings_.side;
  std::vector<float> picture(static_cast<size_t>(side) * static_cast<size_t>(side));
  std::vector<bool> evidence(picture.size());
  const auto add = [&](const Stamp& stamp, Offset anchor, float contrast, bool decides) {
    each_pixel(stamp, anchor, side, [&](int y, int x, uint8_t grey) {
      const auto p = static_cast<size_t>(y * side + x);
      picture[p] = std::max(picture[p], contrast * static_cast<float>(grey));
      if (decides && grey >= kTouched) evidence[p] = true;
    });
  };
  for (size_t i = 0; i < scene.snakes.size(); i++) {
    const bool target = i < 2;
    const double contrast = target ? settings_.contrast : settings_.distractor_contrast;
    for (const Paddle& p : scene.snakes[i])
      add(paddles.stroke(p).line, p.anchor, static_cast<float>(contrast), target);
  }
  for (const Offset& marker : scene.markers) add(marker_, marker, 1, true);
  const float highest = *std::max_element(picture.begin(), picture.end());
  for (const float value : picture)
    scene.grey.push_back(static_cast<uint8_t>(std::floor(value * 255.0 / highest + 0.5)));
  for (size_t p = 0; p < evidence.size(); p++)
    if (evidence[p]) scene.evidence.push_back(static_cast<int32_t>(p));
}

Settings settings_of(int side, int contour, int distractors) {
  // clang-format off
  static const std::vector<Settings> kTable = {
      {.side = 16,  .padding = 1, .length = 2, .thickness = 0.5, .margins = {0.5}, .clearance = 0.5,
       .seed_distance = 4,
       .frame = 6, .continuity = 1.4, .distractors = 4, .contrast = 1, .distractor_contrast = 1,
       .marker_radius = 1},
      {.side = 24,  .padding = 1, .length = 2, .thickness = 0.5, .margins = {1}, .seed_distance = 5,
       .frame = 10, .continuity = 1, .distractors = 11, .contrast = 1.5, .distractor_contrast = 2,
       .marker_radius = 1.5},
      {.side = 32,  .padding = 1, .length = 2, .thickness = 0.5, .margins = {1}, .seed_distance = 7,
       .frame = 14, .continuity = 1, .distractors = 20, .contrast = 1.5, .distractor_contrast = 2,
       .marker_radius = 1.5},
      {.side = 64,  .padding = 1, .length = 5, .thickness = 1, .margins = {1}, .seed_distance = 12,
       .frame = 24, .continuity = 1.8, .distractors = 22, .contrast = 0.8,
       .distractor_contrast = 0.8, .marker_radius = 2.5},
      {.side = 128, .padding = 1, .length = 5, .thickness = 1.5, .margins = {2, 3},
       .seed_distance = 20, .frame = 40, .continuity = 1.8, .distractors = 35, .contrast = 0.9,
       .distractor_contrast = 0.9, .marker_radius = 3}};
  // clang-format on
  for (Settings s : kTable) {
    if (s.side != side) continue;
    s.contour = contour;
    s.distractor_contour = std::max(1, contour / 3);
    // The table counts the paddles of all distractors together.
    s.distractors = distractors >= 0 ? distractors : s.distractors / s.distractor_contour;
    return s;
  }
  throw_error(fmt::format("no snakes at side {}; sides are 16, 24, 32, 64 and 128", side));
}

}  // namespace attn::snakes
