// A text of made-up people, whose facts come again and whose verbs agree with a far subject: what
// the task lm reads where no file is given. By integers alone. O(bytes).
#pragma once

#include <cstdint>
#include <string>

#include "core/base/rng.h"

namespace attn::language {

struct TownText {
  std::string text;    // exactly as many bytes as asked for; the last sentence is cut
  int64_t people = 0;  // that it names
};

// Of at most `people` people, at least 2. Sentences follow one another, each with a full stop and a
// blank. The first two, and later every fourth while there are people left, present somebody: "mola
// is a baker from ketu." Name, sex, trade and place are drawn for each text; names of two or three
// syllables, places of two. The other sentences are about people who were presented, drawn anew for
// each mention, in one of three forms, equally likely:
//   the baker mola sold two red jugs to teri of sabo.
//   mola of ketu says that she saw the smith teri.
//   the jugs that mola the baker made for teri of sabo are red.
// "sold a red jug" and "the jug … is" are as likely as the plural. Sex, trade and place of a person
// are always those of the first sentence, and `is` or `are` is the number of the first noun.
TownText town_text(int64_t bytes, int64_t people, Rng& random);

}  // namespace attn::language
