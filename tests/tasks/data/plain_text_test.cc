// Plain text in windows: which bytes are in which split, what is left out, and what is refused.
#include "tasks/data/plain_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/rng.h"
#include "tasks/data/bytes.h"
#include "tests/said.h"
#include "tests/tasks/data/folder.h"

namespace attn::data::plain_text_test {
namespace {

std::string noise(int64_t size, uint64_t seed) {
  Rng random = rng(seed, "noise");
  std::string bytes;
  for (int64_t i = 0; i < size; i++) bytes += static_cast<char>(random.below(256));
  return bytes;
}

// The input and its labels as one text again.
std::string whole(const Example& e) {
  const size_t size = e.tokens.size();
  return text_of(e.tokens) + static_cast<char>(e.target[size - 1]);
}

// All the texts of a split, sorted; and the example of one of them.
std::vector<std::string> texts(const Source& source, Split split) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < source.count(split); i++) all.push_back(whole(source.example(split, i)));
  std::sort(all.begin(), all.end());
  return all;
}
Example with_text(const Source& source, Split split, const std::string& text) {
  for (int64_t i = 0; i < source.count(split); i++)
    if (Example e = source.example(split, i); whole(e) == text) return e;
  return {};
}

// Windows of one document.
void add_windows(const std::string& document, size_t length, std::vector<std::string>& all) {
  for (size_t at = 0; at < document.size(); at += length)
    all.push_back(document.substr(at, length + 1));
}

// Of a file of 100 parts of 1000 bytes and 7 more at the end.
TEST(PlainText, AFileIsAHundredDocumentsCutIntoWindows) {
  const Folder folder;
  const std::string text = noise(100'007, 1);
  folder.write("file", text);
  const auto source = plain_text(folder.path() + "/file", 300);
  EXPECT_EQ(source->count(Split::train), 80 * 4) << "windows from 0, 300, 600, 900";
  EXPECT_EQ(source->count(Split::validation), 10 * 4);
  EXPECT_EQ(source->count(Split::test), 10 * 4);
  EXPECT_EQ(source->duplicates(), 0);
  std::vector<std::string> validation, test;
  for (size_t part = 8; part < 100; part += 10) {
    add_windows(text.substr(part * 1000, 1000), 300, validation);
    add_windows(text.substr(part * 1000 + 1000, part == 98 ? 1007 : 1000), 300, test);
  }
  std::sort(validation.begin(), validation.end());
  std::sort(test.begin(), test.end());
  EXPECT_EQ(texts(*source, Split::validation), validation);
  EXPECT_EQ(texts(*source, Split::test), test) << "the last with the remainder";
  EXPECT_NE(whole(source->example(Split::test, 0)) + whole(source->example(Split::test, 1)),
            text.substr(9000, 301) + text.substr(9300, 301))
      << "in an order of their own";
  const Example e = with_text(*source, Split::test, text.substr(9900, 100));
  ASSERT_EQ(e.target.size(), 300u);
  for (size_t i = 0; i < e.target.size(); i++) {
    ASSERT_EQ(e.target[i], i < 99 ? static_cast<unsigned char>(text[9901 + i]) : kIgnoredLabel);
    ASSERT_EQ(e.distances[i], i < 99 ? static_cast<int32_t>(i) : -1);
    ASSERT_EQ(e.label_slices.at("repeats").at(i), i < 99 ? 0 : -1) << "of noise none repeats";
  }
}

TEST(PlainText, OfAFolderEachFileIsADocumentInTheOrderOfNames) {
  const Folder folder;
  for (int i = 0; i < 10; i++)
    folder.write(fmt::format("part{}", i), noise(200, static_cast<uint64_t>(i)));
  folder.write(".hidden", noise(5000, 11));
  folder.write("below/file", noise(5000, 12));
  folder.write("part3", "too short to count");
  const auto source = plain_text(folder.path(), 128);
  EXPECT_EQ(source->count(Split::train), 7 * 2);
  for (const auto& [split, number] : {std::pair(Split::validation, 8), std::pair(Split::test, 9)}) {
    std::vector<std::string> expected;
    add_windows(noise(200, static_cast<uint64_t>(number)), 128, expected);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(texts(*source, split), expected);
  }
}

// Every run of 64 bytes, wherever it begins; one of 48 bytes is none.
TEST(PlainText, ARunThatAnEarlierSplitHasIsLeftOut) {
  for (const int64_t from : {0, 1, 15, 16, 100, 336})
    for (const int64_t to : {0, 7, 136}) {
      std::array<std::string, 10> documents;
      for (size_t i = 0; i < 10; i++) documents[i] = noise(400, 20 + i);
      const auto with = [&](int64_t size) {
        std::array<std::string, 10> own = documents;
        own[9].replace(static_cast<size_t>(to), static_cast<size_t>(size),
                       own[5].substr(static_cast<size_t>(from), static_cast<size_t>(size)));
        const Folder folder;
        for (size_t i = 0; i < 10; i++) folder.write(fmt::format("part{}", i), own[i]);
        return plain_text(folder.path(), 200)->count(Split::test);
      };
      EXPECT_EQ(with(48), 2) << from << ' ' << to;
      EXPECT_EQ(with(64), 1) << from << ' ' << to << ": in the first of two windows alone";
    }
}

TEST(PlainText, ValidationAndTestShareNoRunEither) {
  const Folder folder;
  for (int i = 0; i < 9; i++)
    folder.write(fmt::format("part{}", i), noise(400, static_cast<uint64_t>(i)));
  folder.write("part9", noise(400, 8).substr(50, 100) + noise(300, 99));
  const auto source = plain_text(folder.path(), 200);
  EXPECT_EQ(source->count(Split::validation), 2) << "the earlier split keeps it";
  EXPECT_EQ(source->count(Split::test), 1);
  EXPECT_EQ(source->duplicates(), 1);
}

// By brute force, on a text that repeats itself often: no run of 64 bytes of what is kept of a
// later split is anywhere in the documents of an earlier one.
TEST(PlainText, NothingThatIsKeptIsInAnEarlierSplit) {
  const Folder folder;
  Rng random = rng(4, "repeats");
  std::vector<std::string> pieces, documents;
  for (uint64_t i = 0; i < 200; i++) pieces.push_back(noise(random.between(20, 110), 100 + i));
  for (int i = 0; i < 20; i++) {
    std::string text;
    while (text.size() < 1500) {
      text += pieces[random.below(pieces.size())];
      if (random.coin()) text += noise(random.between(1, 150), random.bits());
    }
    folder.write(fmt::format("part{:02}", i), text);
    documents.push_back(text);
  }
  const auto source = plain_text(folder.path(), 100);
  EXPECT_GT(source->duplicates(), 5);
  const auto split_of = [](size_t i) {
    return i % 10 == 8 ? Split::validation : i % 10 == 9 ? Split::test : Split::train;
  };
  for (const Split split : {Split::validation, Split::test})
    for (int64_t i = 0; i < source->count(split); i++) {
      const std::string text = whole(source->example(split, i));
      for (size_t at = 0; at + 64 <= text.size(); at++)
        for (size_t d = 0; d < documents.size(); d++) {
          if (split_of(d) >= split) continue;
          ASSERT_EQ(documents[d].find(text.substr(at, 64)), std::string::npos);
        }
    }
}

TEST(PlainText, TheFingerprintIsOfTextAndNames) {
  const auto fingerprint = [](const std::string& name, const std::string& first) {
    const Folder folder;
    for (int i = 0; i < 10; i++)
      folder.write(fmt::format("{}{}", name, i), noise(200, static_cast<uint64_t>(i)));
    folder.write(name + "0", first);
    return plain_text(folder.path(), 128)->fingerprint();
  };
  const std::string text = noise(200, 0);
  EXPECT_EQ(fingerprint("a", text), fingerprint("a", text));
  EXPECT_NE(fingerprint("a", text), fingerprint("a", noise(200, 77)));
  EXPECT_NE(fingerprint("a", text), fingerprint("b", text));
  EXPECT_EQ(fingerprint("a", text).size(), 16u);
}

TEST(PlainText, WhatCannotBeReadGetsOneLine) {
  const Folder folder;
  const auto fault = [&](const std::string& name) {
    return fault_of([&] { plain_text(folder.path() + name, 128); });
  };
  EXPECT_TRUE(says(fault("/none"), "none"));
  folder.write("empty", "");
  EXPECT_TRUE(says(fault("/empty"), "the train split is empty, of 0 bytes"));
  folder.write("short", std::string(6000, 'x') + "y");
  EXPECT_TRUE(says(fault("/short"), "the train split is empty, of 6001 bytes in 100 documents"));
  folder.write("same", std::string(60'000, 'x'));
  EXPECT_TRUE(says(fault("/same"), "share 64 bytes with another split are left out"));
  EXPECT_TRUE(says(fault(""), "3 files; of a folder every file is a document"));
  folder.write("large", "x");
  std::filesystem::resize_file(folder.path() + "/large", uintmax_t{1} << 31);  // takes no room
  EXPECT_TRUE(says(fault("/large"), "2147483648 bytes, more than the 1073741824 that are read"));
  for (const std::string& text : {fault("/same"), fault("/empty"), fault("")})
    EXPECT_EQ(text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace attn::data::plain_text_test
