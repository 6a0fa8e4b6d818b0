// compression: predict all tokens of a random sequence from the vector of its last position. Poli
// et al. 2024 (MAD), arXiv:2403.17844, and its data generator. O(length) per example.
#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"

namespace attn::tasks {
namespace {

class Compression final : public Task {
 public:
  explicit Compression(const Params& p)
      : Task(p), vocab_(p.integer("vocab")), length_(p.integer("length")) {
    recall::check_inputs("compression", vocab_ - 1, length_ - 1, "length or vocab");
  }

 private:
  Example do_example(Rng& random) const override {
    Example e;
    for (int64_t i = 0; i + 1 < length_; i++) {
      e.tokens.push_back(static_cast<int32_t>(random.between(1, vocab_ - 1)));
      e.distances.push_back(static_cast<int32_t>(length_ - 1 - i));
    }
    e.evidence = first_positions(e.tokens.size());
    e.target = e.tokens;
    e.tokens.push_back(static_cast<int32_t>(vocab_));
    e.target.push_back(kIgnoredLabel);
    e.distances.push_back(-1);
    return e;
  }

  TaskShape do_shape() const override {
    return {.length = length_,
            .vocab = vocab_ + 1,
            .classes = vocab_ + 1,
            .per_token = true,
            .causal = true,
            .compressed = true};
  }

  // The ladder's window is all there is to a sequence of uniform tokens.
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (size_t i = 0; i + 1 < e.tokens.size(); i++) text += fmt::format("{} ", e.tokens[i]);
    return text + "| all of them, from the last vector\n";
  }

  int64_t vocab_, length_;
};

}  // namespace

TaskInfo compression() {
  return {
      .name = "compression",
      .summary = "read a whole sequence of random tokens from the vector of its last position",
      .source = "arXiv:2403.17844 (MAD), compression, and its data generator",
      .datasheet =
          "Positions 0..length-2 hold tokens of 1..vocab-1, uniform and independent; the last one\n"
          "the compression token, vocab.\n"
          "Label: of each position but the last, its token. All labels are read from the last\n"
          "position's vector and the number of the position, through a decoder that the harness\n"
          "adds (MAD asks for the compression token too, which is always the same). Causal.\n"
          "Evidence: every position but the last, each for its own label.\n"
          "Distance of a label: from the position to the last one.\n"
          "Slices: none.",
      .params = {{"vocab", 16, "tokens but padding, with the compression token", 3, 1e6},
                 {"length", 32, "sequence length, with the compression token", 2, 1e6},
                 {"train_examples", 12800, "training set, repeated over epochs; MAD's size"}},
      .presets = {{"mad", "MAD's baseline", {{"vocab", 16}, {"length", 32}}},
                  {"mad-wide", "MAD's largest vocabulary", {{"vocab", 128}}},
                  {"mad-long", "MAD's longest", {{"length", 256}}},
                  {"small", "15 tokens of 7", {{"vocab", 8}, {"length", 16}}}},
      .make = make_task<Compression>};
}

}  // namespace attn::tasks
