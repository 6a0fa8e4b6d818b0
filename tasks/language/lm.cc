// lm: predict the next byte of a text, at every position. Of a file or a folder, else of a small
// grammar with facts that come again (town.h). O(length) per example.
#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/data/bytes.h"
#include "tasks/data/plain_text.h"
#include "tasks/language/town.h"

namespace attn::tasks {
namespace {

constexpr int64_t kBytes = 256;

class Lm final : public Task {
 public:
  explicit Lm(const Params& p)
      : Task(p), length_(p.integer("length")), people_(p.integer("people")) {
    if (const std::string& path = p.text("data"); !path.empty())
      files_ = data::plain_text(path, length_);
  }

 private:
  Example do_example(Rng& random) const override {
    const language::TownText made = language::town_text(length_ + 1, people_, random);
    Example e = data::next_bytes(made.text);
    e.slices = {{"people", static_cast<double>(made.people)}};
    return e;
  }

  const Source* do_source() const override { return files_.get(); }

  TaskShape do_shape() const override {
    return {.length = length_,
            .vocab = kBytes + 1,
            .classes = kBytes,
            .per_token = true,
            .causal = true,
            .bits = true};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};  // the n-grams of all tasks that are scored in bits
  }

  std::string do_draw(const Example& e) const override { return data::text_of(e.tokens) + "\n"; }

  int64_t length_, people_;
  std::unique_ptr<Source> files_;
};

}  // namespace

TaskInfo lm() {
  return {
      .name = "lm",
      .summary = "the next byte of a text: of your own files, or of a small grammar",
      .source = "byte-level language modelling of files, or a grammar of our own",
      .datasheet =
          "Label: at every position, the next byte. Token: byte + 1; class: the byte. Causal.\n"
          "Metric: bits a token, the mean of -log2 of the probability of the label. A token is a\n"
          "byte, so that these are bits a byte.\n"
          "Without `data`: sentences about made-up people, up to `people` of them, drawn for each\n"
          "sequence. Two sentences present two of them: mola is a baker from ketu. Later ones\n"
          "present others, or tell of those there are:\n"
          "  the baker mola sold two red jugs to teri of sabo.\n"
          "  mola of ketu says that she saw the smith teri.\n"
          "  the jugs that mola the baker made for teri of sabo are red.\n"
          "Trade, place and sex of a person stay, and is or are is the number of the first noun:\n"
          "what is far away determines the byte. Every choice is uniform.\n"
          "With `data`, a file or a folder: every file of the folder is a document (not of "
          "folders\n"
          "in it); a single file is 100 documents of equal length. Of ten documents in a row, "
          "eight\n"
          "are for training, the ninth for validation, the tenth for the test. An example is up "
          "to\n"
          "`length`+1 bytes of a document, from where the labels of the one before end; with less\n"
          "than 65 bytes it is left out. So is an example of validation or test that has 64 bytes\n"
          "in a row with an earlier split in common: what was learned by heart is not scored.\n"
          "The examples of a split are in an order of their own, the same each time.\n"
          "A text to begin with: Debian's package bible-kjv; bible gen1:1-rev22:21 > kjv.txt (4.3 "
          "MB,\n"
          "in the public domain).\n"
          "Evidence: none is named, because nothing determines the next byte.\n"
          "Distance of a label: the number of bytes before its position, so that the score by\n"
          "distance shows what context is worth.\n"
          "Slices: people (named in a generated sequence); of files none. Of a label: repeats, 1\n"
          "where the last four bytes have stood earlier in the sequence with the label behind "
          "them,\n"
          "so that recall finds it, else 0.",
      .metric = "bits_per_token",
      .params = {{"length", 512, "bytes that are read: the longest context", 64, 65536},
                 {"people", 8, "of a generated text, at most", 2, 100},
                 {"data", std::vector<std::string>{""},
                  "a file, or a folder of documents; empty: generated"},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets = {{"standard", "256 bytes", {{"length", 256}}},
                  {"long", "2048 bytes, up to 20 people", {{"length", 2048}, {"people", 20}}},
                  {"small", "128 bytes, two people", {{"length", 128}, {"people", 2}}}},
      .make = make_task<Lm>};
}

}  // namespace attn::tasks
