// Plain text of a file or of a folder as examples of a language model: windows of bytes, split by
// document, without runs of bytes that another split has.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tasks/api/task.h"

namespace attn::data {

// A run of so many bytes that two splits have is a leak.
inline constexpr int64_t kSharedRun = 64;

// Documents: the files of a folder, in the order of their names, but for those that begin with a
// full stop; or a file in 100 parts of equal length, the last with the remainder. Of ten documents
// in a row the ninth is validation, the tenth test, the others train. An example is up to `length`
// + 1 bytes of one document, beginning `length` bytes behind the one before: each byte is a token
// (byte + 1), and its label is the next byte. An example of less than kSharedRun + 1 bytes is left
// out; so is one of validation or test that shares a run of kSharedRun bytes with an earlier split,
// whichever of its examples that one keeps. Every such run is found; some of 49 to 63 bytes are,
// too, because training is remembered by every sixteenth run of 49. The order of examples is
// shuffled, the same each time. Holds the text, at most 1 GiB, and half as many bytes while it is
// read. Error, which names `path`: nothing there, or an empty split.
std::unique_ptr<Source> plain_text(const std::string& path, int64_t length);

// A byte repeats an earlier span where it and so many bytes before it have stood earlier. Of fewer
// bytes many runs come again by chance.
inline constexpr int64_t kRepeatedBytes = 4;

// The bytes of `text` but the last as tokens, each with the byte after it as its label and the
// number of bytes before it as its distance. The slice `repeats` of a label is 1 where its byte
// repeats an earlier span of the text, else 0: the AR hits of arXiv:2312.04927, of bytes in place
// of words.
// `text` has at least one byte. O(length).
Example next_bytes(std::string_view text);

}  // namespace attn::data
