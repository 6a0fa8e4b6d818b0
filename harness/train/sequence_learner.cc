// The learner for output sequences: an encoder and a decoder, trained with teacher forcing and
// scored with greedy decoding; see learner.h. A loss costs one forward pass of both. A score costs
// one forward pass of the encoder and one decoder step per token.
#include <algorithm>
#include <chrono>
#include <utility>

#include "core/ops/ops.h"
#include "harness/model/greedy.h"
#include "harness/train/learner.h"
#include "harness/train/settings.h"
#include "harness/train/slices.h"

namespace attn {

namespace {

using Outputs = std::vector<std::vector<int32_t>>;

// Enough for a stable ratio of the two ways; prefixes cost an output's length times more.
constexpr int64_t kTimedSequences = 256;

EncoderDecoderConfig config_of(const LearnerSpec& spec) {
  return {.model = model_config(spec), .outputs = spec.shape.outputs, .exact = spec.exact};
}

class SequenceLearner final : public Learner {
 public:
  explicit SequenceLearner(const LearnerSpec& spec) : model_(config_of(spec)) {}

  Var loss(const Batch& batch, Rng* dropout) const override {
    const EncoderDecoder::Forced forced = model_.forced(batch);
    const EncoderDecoder::Memory memory = model_.encode(batch, dropout);
    return cross_entropy(model_.decode(memory, forced.inputs, dropout), forced.labels);
  }

  Score score(const std::vector<Batch>& batches) const override {
    std::vector<Answer> answers;
    int64_t sequences = 0, places = 0, right_places = 0;
    for (const Batch& batch : batches) {
      const Outputs wanted = this->wanted(batch), chosen = decoded(batch);
      for (size_t b = 0; b < wanted.size(); ++b) {
        answers.push_back({sequences++, batch.distances.empty() ? -1 : batch.distances[b],
                           chosen[b] == wanted[b] ? 1.0 : 0.0});
        places += std::ssize(wanted[b]);
        for (size_t i = 0; i < std::min(wanted[b].size(), chosen[b].size()); ++i)
          right_places += wanted[b][i] == chosen[b][i];
      }
    }
    std::vector<SliceBin> slices = slice_bins(answers, batches);
    Score score = score_of(std::move(answers), sequences);
    score.by_slice = std::move(slices);
    if (places > 0)
      score.token_accuracy = static_cast<double>(right_places) / static_cast<double>(places);
    return score;
  }

  std::vector<Weight> weights() const override { return model_.weights(); }
  std::optional<int64_t> state_bytes(const TaskShape& shape) const override {
    return model_.state_bytes(shape.length, shape.outputs);
  }
  std::vector<std::string> places() const override { return model_.places(); }

  // What follows the encoder is timed, the keys and values of its output included.
  std::optional<Decoding> decoding(const std::vector<Batch>& batches) const override {
    if (!model_.has_states() || batches.empty()) return std::nullopt;
    decoded(batches[0]);  // warms up caches and pool
    Decoding sum;
    int64_t same = 0;
    for (const Batch& batch : batches) {
      if (sum.sequences >= kTimedSequences) break;
      const EncoderDecoder::Memory memory = encoded(batch);
      const int64_t outputs = width_of(batch);
      const Outputs by_states = timed(memory, DecodeBy::states, outputs, sum.state_s);
      const Outputs by_prefixes = timed(memory, DecodeBy::prefixes, outputs, sum.recompute_s);
      for (size_t b = 0; b < by_states.size(); ++b) {
        sum.tokens += std::ssize(by_states[b]);
        same += by_states[b] == by_prefixes[b];
      }
      sum.sequences += batch.size;
    }
    sum.same = static_cast<double>(same) / static_cast<double>(sum.sequences);
    return sum;
  }

 private:
  EncoderDecoder::Memory encoded(const Batch& batch) const {
    const NoGrad no_grad;
    return model_.encode(batch);
  }
  // The longest output of the batch's task, which with longer test lengths is not the model's:
  // what has not ended there is wrong already.
  static int64_t width_of(const Batch& batch) { return std::ssize(batch.targets) / batch.size; }
  Outputs decoded(const Batch& batch) const {
    return greedy(model_, encoded(batch),
                  model_.has_states() ? DecodeBy::states : DecodeBy::prefixes, width_of(batch));
  }
  Outputs timed(const EncoderDecoder::Memory& memory, DecodeBy way, int64_t most,
                double& seconds) const {
    const auto begin = std::chrono::steady_clock::now();
    Outputs outputs = greedy(model_, memory, way, most);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return outputs;
  }

  // Each sequence's tokens and its end.
  Outputs wanted(const Batch& batch) const {
    const std::vector<int32_t> labels = model_.forced(batch).labels;
    const auto width = std::ssize(labels) / batch.size;
    Outputs outputs;
    for (auto row = labels.begin(); row != labels.end(); row += width)
      outputs.emplace_back(row, std::find(row, row + width, -1));
    return outputs;
  }

  EncoderDecoder model_;
};

}  // namespace

std::unique_ptr<Learner> make_sequence_learner(const LearnerSpec& spec) {
  return std::make_unique<SequenceLearner>(spec);
}

}  // namespace attn
