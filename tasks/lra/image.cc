// image: classify a noisy picture of one of ten shapes from its grey pixels in raster order. Place,
// size, thickness, rotation and contrast are random. Replaces the pixel task of Long Range Arena
// (arXiv:2011.04006, 2.2.4). O(side²) per example.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/data/released.h"
#include "tasks/data/sources.h"
#include "tasks/shortcuts/fitted.h"

namespace attn::tasks {
namespace {

// Classes in the order of their labels. All arithmetic is + - * / and square roots: the same pixels
// on every platform.
constexpr const char* kShapeNames[] = {"disc",     "ring", "half", "square", "frame",
                                       "triangle", "bar",  "plus", "ell",    "dots"};
constexpr int kShapes = 10;

// Is (u, v) inside the shape in its own frame, where its farthest point is at about 1? `t` is the
// thickness of strokes.
bool inside(int shape, double u, double v, double t) {
  const double r2 = u * u + v * v, au = std::abs(u), av = std::abs(v);
  switch (shape) {
    case 0:
      return r2 <= 1;
    case 1:
      return r2 <= 1 && r2 >= (1 - t) * (1 - t);
    case 2: {
      const double w = v + 0.42;  // centred: the half disc's centroid lies 0.42 from its edge
      return w >= 0 && u * u + w * w <= 1;
    }
    case 3:
      return std::max(au, av) <= 0.75;
    case 4:
      return std::max(au, av) <= 0.75 && std::max(au, av) >= 0.75 - t;
    case 5:
      return v >= -0.5 && v <= 1 - 1.7320508 * au;
    case 6:
      return au <= 1 && av <= t / 2;
    case 7:
      return std::min(au, av) <= t / 2 && std::max(au, av) <= 1;
    case 8:
      return u >= -0.7 && v >= -0.7 && u <= 0.85 && v <= 0.85 && (u <= t - 0.7 || v <= t - 0.7);
    default:
      return (au - 0.62) * (au - 0.62) + v * v <= 0.38 * 0.38;
  }
}

struct Pose {
  double x, y, radius;  // in pixels
  double cosine, sine;
  double thickness;  // of strokes, in radii
};

// The fraction of pixel (x, y) inside the shape, from 4 × 4 samples.
double coverage(int shape, const Pose& pose, int64_t x, int64_t y) {
  constexpr int kSamples = 4;
  int hits = 0;
  for (int i = 0; i < kSamples * kSamples; i++) {
    const double dx = static_cast<double>(x) + (i % kSamples + 0.5) / kSamples - pose.x;
    const double dy = static_cast<double>(y) + (i / kSamples + 0.5) / kSamples - pose.y;
    const double u = (pose.cosine * dx + pose.sine * dy) / pose.radius;
    const double v = (pose.cosine * dy - pose.sine * dx) / pose.radius;
    hits += inside(shape, u, v, pose.thickness);
  }
  return static_cast<double>(hits) / (kSamples * kSamples);
}

Pose draw_pose(Rng& random, double side) {
  Pose pose;
  pose.radius = side * random.uniform(0.26, 0.40);
  pose.thickness = random.uniform(0.28, 0.42);
  const double margin = pose.radius * 1.11;  // the farthest corner of any shape is the ell's, 1.10
  pose.x = random.uniform(margin, side - margin);
  pose.y = random.uniform(margin, side - margin);
  double square;
  do {  // a random direction without sine and cosine: a point of the disc, scaled to the circle
    pose.cosine = random.uniform(-1, 1);
    pose.sine = random.uniform(-1, 1);
    square = pose.cosine * pose.cosine + pose.sine * pose.sine;
  } while (square > 1 || square < 0.01);
  const double norm = std::sqrt(square);
  pose.cosine /= norm;
  pose.sine /= norm;
  return pose;
}

// Mean 0, variance 1, nearly normal, without logarithms: the sum of four uniforms has variance 1/3.
double nearly_normal(Rng& random) {
  double sum = -2;
  for (int i = 0; i < 4; i++) sum += random.uniform();
  return sum * 1.7320508;
}

// Grey levels 0..255 become (level/255 − mean)/deviation.
struct Scale {
  double mean, deviation;

  float input(double level) const { return static_cast<float>((level / 255 - mean) / deviation); }
  double grey(float value) const { return value * deviation + mean; }  // 0..1
};

constexpr Scale kDrawn = {.mean = 0.28, .deviation = 0.18};  // measured at the default noise
constexpr Scale kCifar = {.mean = 0.48, .deviation = 0.24};
constexpr const char* kCifarNames[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                       "dog",      "frog",       "horse", "ship", "truck"};

Example cifar_example(std::span<const uint8_t> grey, int32_t label) {
  Example e{.target = {label}};
  for (const uint8_t level : grey) e.values.push_back(kCifar.input(level));
  return e;
}

class Image final : public Task {
 public:
  explicit Image(const Params& p) : Task(p), side_(p.integer("side")), noise_(p.number("noise")) {
    const std::string& folder = p.text("data");
    if (folder.empty()) return;
    ATTN_CHECK(side_ == 32, "image: side={}; with data the pictures are CIFAR-10's, side=32",
               side_);
    files_ = data::cifar10(folder, cifar_example);
  }

 private:
  Example do_example(Rng& random) const override {
    const int shape = static_cast<int>(random.below(kShapes));
    const Pose pose = draw_pose(random, static_cast<double>(side_));
    const double background = random.uniform(0.1, 0.3), contrast = random.uniform(0.3, 0.6);
    Example e;
    e.target = {shape};
    for (int64_t y = 0; y < side_; y++)
      for (int64_t x = 0; x < side_; x++) {
        const double covered = coverage(shape, pose, x, y);
        if (covered > 0) e.evidence.push_back(static_cast<int32_t>(y * side_ + x));
        const double grey = background + contrast * covered + noise_ * nearly_normal(random);
        // 256 levels, as in 8-bit pictures.
        const double level = std::floor(255 * std::clamp(grey, 0.0, 1.0) + 0.5);
        e.values.push_back(kDrawn.input(level));
      }
    e.slices = {{"radius", pose.radius / static_cast<double>(side_)},
                {"thickness", pose.thickness},
                {"contrast", contrast}};
    return e;
  }

  const Source* do_source() const override { return files_.get(); }
  const Scale& scale() const { return files_ ? kCifar : kDrawn; }

  int64_t do_picture_width() const override { return side_; }
  std::vector<uint8_t> do_picture(const Example& e) const override {
    std::vector<uint8_t> levels;
    for (const float value : e.values)
      levels.push_back(static_cast<uint8_t>(255 * std::clamp(scale().grey(value), 0.0, 1.0) + 0.5));
    return levels;
  }

  TaskShape do_shape() const override {
    return {.length = side_ * side_, .vocab = 0, .classes = kShapes};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    constexpr int64_t kMost = 32;  // pixels along an edge: the cost grows with the sixth power
    if (side_ <= kMost) return {{"linear pixels", linear_score(train, test, kShapes)}};
    return {{"linear pixels", linear_score(reduced_pictures(*this, train, kMost),
                                           reduced_pictures(*this, test, kMost), kShapes)}};
  }

  std::string do_draw(const Example& e) const override {
    constexpr std::string_view kShades = " .:-=+*#%@";
    std::string text;
    for (size_t i = 0; i < e.values.size(); i++) {
      const double grey = scale().grey(e.values[i]);
      const char shade = kShades[static_cast<size_t>(std::clamp(grey * 10, 0.0, 9.0))];
      text.append(2, shade);  // twice, since characters are tall
      if ((i + 1) % static_cast<size_t>(side_) == 0) text += '\n';
    }
    const char* const name = (files_ ? kCifarNames : kShapeNames)[e.target[0]];
    return text + fmt::format("= {} ({})\n", e.target[0], name);
  }

  int64_t side_;
  double noise_;
  std::unique_ptr<Source> files_;
};

}  // namespace

TaskInfo image() {
  return {
      .name = "image",
      .summary = "name the shape in a small noisy picture, read pixel by pixel",
      .source = "procedural; input contract after arXiv:2011.04006 (Long Range Arena), 2.2.4",
      .datasheet =
          "A picture of side x side grey pixels in raster order, one real number each: 256 grey\n"
          "levels, shifted and scaled by constants. It shows one bright shape; place, size,\n"
          "rotation, stroke thickness, contrast and background are random, every pixel has noise.\n"
          "Label: disc, ring, half (disc), square, frame, triangle, bar, plus, ell, dots (two).\n"
          "Evidence: the pixels that the shape touches.\n"
          "Slices: radius (of the shape, over the side), thickness (of strokes, over the radius),\n"
          "contrast (of the shape against the background, in units of black to white).",
      .params = {{"side", 32, "pixels along an edge; the length is its square", 8, 512},
                 {"noise", 0.05, "standard deviation of the noise, in units of black to white", 0.0,
                  1.0},
                 {"train_examples", 45000, "training set, repeated over epochs; LRA's size"},
                 {"data", std::vector<std::string>{""},
                  "folder of CIFAR-10's binary batches; empty: generated"}},
      .presets = {{"lra", "32 x 32 pixels, as CIFAR-10", {{"side", 32}}},
                  {"standard", "24 x 24 pixels", {{"side", 24}, {"train_examples", 20000}}},
                  {"small", "16 x 16 pixels", {{"side", 16}, {"train_examples", 8000}}}},
      .make = make_task<Image>,
      .released = &data::cifar10_format()};
}

}  // namespace attn::tasks
