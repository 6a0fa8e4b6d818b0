// Greedy decoding from states or from prefixes; see greedy.h. A sequence that has ended gets end
// tokens until all sequences have ended. n steps compute O(n) positions from states, O(n²) from
// prefixes.
#include "harness/model/greedy.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace attn {

namespace {

// Logits of the token after those chosen so far: [size, classes + 1].
class NextLogits {
 public:
  NextLogits(const EncoderDecoder& model, const EncoderDecoder::Memory& memory, DecodeBy way,
             int64_t outputs)
      : model_(model), memory_(memory), way_(way) {
    if (way == DecodeBy::states) states_ = model.start(memory, outputs);
  }

  Tensor of(const std::vector<std::vector<int32_t>>& chosen, int64_t step) {
    if (way_ == DecodeBy::states) return model_.step(memory_, states_, inputs(chosen, step, step));
    const Tensor all = model_.decode(memory_, inputs(chosen, 0, step)).value();
    const int64_t size = all.dim(0), steps = all.dim(1), classes = all.dim(2);
    const Tensor last({size, classes});
    for (int64_t b = 0; b < size; ++b)
      std::copy_n(all.data() + (b * steps + steps - 1) * classes, classes,
                  last.data() + b * classes);
    return last;
  }

 private:
  // The decoder's inputs at positions [from, to]: start, then what was chosen, then ends.
  std::vector<int32_t> inputs(const std::vector<std::vector<int32_t>>& chosen, int64_t from,
                              int64_t to) const {
    std::vector<int32_t> tokens;
    for (const std::vector<int32_t>& sequence : chosen)
      for (int64_t i = from; i <= to; ++i)
        tokens.push_back(i == 0                      ? model_.start_token()
                         : i <= std::ssize(sequence) ? sequence[static_cast<size_t>(i - 1)]
                                                     : model_.end_token());
    return tokens;
  }

  const EncoderDecoder& model_;
  const EncoderDecoder::Memory& memory_;
  DecodeBy way_;
  EncoderDecoder::States states_;
};

}  // namespace

std::vector<std::vector<int32_t>> greedy(const EncoderDecoder& model,
                                         const EncoderDecoder::Memory& memory, DecodeBy way,
                                         int64_t outputs) {
  const NoGrad no_grad;
  const int64_t longest = model.config().outputs;
  ATTN_CHECK(outputs >= 0 && outputs <= longest, "outputs of up to {} tokens for a model of {}",
             outputs, longest);
  const int64_t most = outputs > 0 ? outputs : longest;
  std::vector<std::vector<int32_t>> chosen(static_cast<size_t>(memory.rows.dim(0)));
  NextLogits next(model, memory, way, most);
  size_t ended = 0;
  for (int64_t step = 0; step <= most && ended < chosen.size(); ++step) {
    const Tensor logits = next.of(chosen, step);
    const real* row = logits.data();
    for (std::vector<int32_t>& sequence : chosen) {
      const bool open = sequence.empty() || sequence.back() != model.end_token();
      if (open) {
        const auto token = std::max_element(row, row + logits.dim(1)) - row;
        sequence.push_back(static_cast<int32_t>(token));
        ended += sequence.back() == model.end_token();
      }
      row += logits.dim(1);
    }
  }
  return chosen;
}

}  // namespace attn
