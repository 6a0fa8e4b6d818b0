// A search for the likeliest vowels and consonants of frames, written from the task's datasheet:
// the exact solver of tests. O(frames · closure · consonants · vowels).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

// The likeliest segments of frames [first, last), vowels and consonants by turns, by dynamic
// programming over their ends. Log-likelihoods times the noise's variance, less what all share:
// x·mean − mean·mean/2, where the W are orthogonal.
class FramesSolver {
 public:
  FramesSolver(const Example& e, const Params& p, int64_t first, int64_t last)
      : channels_(p.integer("channels")),
        vowels_(p.integer("vowels")),
        consonants_(p.integer("consonants")),
        closure_(p.integer("closure")),
        size_(last - first) {
    for (int64_t row = 0; row <= vowels_ + consonants_; row++) {
      sums_.emplace_back(1, 0.0);
      for (int64_t t = first; t < last; t++) {
        double product = 0;
        for (int64_t c = 0; c < channels_; c++)
          product += static_cast<double>(e.values[static_cast<size_t>(t * channels_ + c)]) *
                     (std::popcount(static_cast<uint64_t>(row & c)) % 2 ? -1 : 1);
        sums_.back().push_back(sums_.back().back() + product);
      }
    }
  }

  std::vector<int32_t> labels() {
    // best_[t][v]: of frames 0..t, where a vowel v or (at v = vowels) the sequence ends at t.
    best_.assign(static_cast<size_t>(size_ + 1), std::vector<Entry>(names() + 1));
    best_[0][names()].score = 0;
    closed_.assign(static_cast<size_t>(size_), std::vector<Entry>(at(consonants_)));
    for (int64_t t = 0; t < size_; t++) {
      for (const Entry& closure : closed_[at(t)])
        if (closure.score != kNever) vowels_after(closure);
      if (t == 0) closures_from(t, names());
      for (size_t v = 0; v <= names(); v++) {
        if (best_[at(t)][v].score == kNever) continue;
        if (v < names()) closures_from(t, v);
        if (t == 0) vowels_from(t, v, -1);
      }
    }
    return trace();
  }

 private:
  static constexpr double kNever = -std::numeric_limits<double>::infinity();
  struct Entry {
    double score = kNever;
    int64_t from = -1;       // where the vowel before ended
    size_t vowel = 0;        // which it was
    int64_t border = -1;     // where the closure between ended
    int64_t consonant = -1;  // and which it was
  };
  static size_t at(int64_t t) { return static_cast<size_t>(t); }
  size_t names() const { return static_cast<size_t>(vowels_); }
  double half() const { return static_cast<double>(channels_) / 2; }
  double heard(int64_t row, int64_t begin, int64_t end) const {
    return sums_[at(row)][at(end)] - sums_[at(row)][at(begin)];
  }
  double transition(int64_t consonant, int64_t t, double share) const {
    return share * heard(1 + vowels_ + consonant, t, t + 1) - half() * share * share;
  }
  // In frames from `t` on, step by step (1 ahead, -1 back), within [0, size).
  double transitions(int64_t consonant, int64_t t, int64_t step) const {
    double sum = 0;
    for (const double share : {1.0, 0.75, 0.5}) {
      if (t < 0 || t >= size_) break;
      sum += transition(consonant, t, share);
      t += step;
    }
    return sum;
  }
  static void offer(const Entry& entry, Entry& held) {
    if (entry.score > held.score) held = entry;
  }

  // A closure from t (after vowel `before`, or the start), then a vowel; either may be cut off.
  void closures_from(int64_t t, size_t before) {
    const double so_far = best_[at(t)][before].score;
    for (int64_t n = 1; n <= closure_ && t + n <= size_; n++) {
      const int64_t end = t + n;
      if (n < 3 && t > 0 && end < size_) continue;
      const double silent = so_far + heard(0, t, end) - half() * static_cast<double>(n);
      for (int64_t c = 0; c < consonants_; c++) {
        const double left = before < names() ? transitions(c, t - 1, -1) : 0;
        const Entry entry{silent + left, t, before, end, c};
        if (end == size_)
          offer(entry, best_[at(size_)][names()]);
        else
          offer(entry, closed_[at(end)][at(c)]);
      }
    }
  }
  void vowels_after(const Entry& closure) {
    const int64_t t = closure.border;
    for (size_t v = 0; v < names(); v++) {
      const double left = transitions(closure.consonant, t, 1);
      for (int64_t n = 1; n <= 12 && t + n <= size_; n++) {
        if (n < 6 && t + n < size_) continue;
        Entry entry = closure;
        entry.score += left + vowel(v, t, n);
        end_vowel(t + n, v, n, entry);
      }
    }
  }
  void vowels_from(int64_t t, size_t before, int64_t border) {
    for (size_t v = 0; v < names(); v++)
      for (int64_t n = 1; n <= 12 && t + n <= size_; n++)
        end_vowel(t + n, v, 6,
                  {best_[at(t)][before].score + vowel(v, t, n), t, before, border, -1});
  }
  double vowel(size_t v, int64_t t, int64_t n) const {
    return heard(1 + static_cast<int64_t>(v), t, t + n) - half() * static_cast<double>(n);
  }
  // The last vowel of all may carry the border of a consonant that is cut off, `cut` frames of its
  // own with it; it has six at least, of which `frames` are there.
  void end_vowel(int64_t end, size_t v, int64_t frames, Entry entry) {
    offer(entry, best_[at(end)][v]);
    if (end < size_) return;
    const double plain = entry.score;
    for (int64_t c = 0; c < consonants_; c++)
      for (int64_t cut = 0; cut < 3; cut++) {
        if (frames + cut < 6) continue;
        const double shares[] = {1.0, 0.75, 0.5};
        double sum = 0;
        for (int64_t i = cut; i < 3 && end - 1 - (i - cut) >= 0; i++)
          sum += transition(c, end - 1 - (i - cut), shares[i]);
        entry.score = plain + sum;
        offer(entry, best_[at(end)][v]);
      }
  }

  std::vector<int32_t> trace() const {
    std::vector<int32_t> labels(at(size_), -1);
    const auto fill = [&](int64_t begin, int64_t end, int64_t label) {
      for (int64_t t = begin; t < end; t++) labels[at(t)] = static_cast<int32_t>(label);
    };
    size_t v = 0;
    for (size_t name = 0; name <= names(); name++)
      if (best_[at(size_)][name].score > best_[at(size_)][v].score) v = name;
    for (int64_t t = size_; t > 0;) {
      const Entry& e = best_[at(t)][v];
      const int64_t border = e.border < 0 ? e.from : e.border;
      if (v < names()) fill(border, t, static_cast<int64_t>(v));
      if (e.border >= 0) fill(e.from, e.border, vowels_ + e.consonant);
      t = e.from;
      v = e.vowel;
    }
    return labels;
  }

  int64_t channels_, vowels_, consonants_, closure_, size_;
  std::vector<std::vector<double>> sums_;  // [row][t]: of products with W(row) before t
  std::vector<std::vector<Entry>> best_;
  std::vector<std::vector<Entry>> closed_;  // [t][c]: where a closure of consonant c ends at t
};

}  // namespace attn
