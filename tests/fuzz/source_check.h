// What targets of data sets expect of a reader that took a folder: each example is read again, and
// is of the shape that the task needs.
#pragma once

#include "tasks/api/task.h"
#include "tests/fuzz/oracle.h"

namespace attn::fuzz {

// Calls check(example) for each example of each split that can be read.
template <class Check>
void check_examples(const Source& source, const Check& check) {
  require(source.fingerprint().size() == 16, "a fingerprint of another size");
  require(source.duplicates() >= 0, "negative duplicates");
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const int64_t count = source.count(split);
    require(count >= 1, "an empty split");
    for (int64_t i = 0; i < count; i++) {
      Example example;
      if (accepts([&] { example = source.example(split, i); })) check(example);
    }
  }
}

inline void require_tokens(const std::vector<int32_t>& tokens, int64_t length, int32_t vocab) {
  require(!tokens.empty() && std::ssize(tokens) <= length, "a length out of range");
  for (const int32_t token : tokens) require(token >= 1 && token < vocab, "a token out of range");
}

inline void require_label(const Example& example, int32_t classes) {
  require(example.target.size() == 1 && example.target[0] >= 0 && example.target[0] < classes,
          "a label out of range");
}

}  // namespace attn::fuzz
