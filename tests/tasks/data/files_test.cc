// Lines of files larger than a block, digests and numbers: what every reader stands on.
#include "tasks/data/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <tuple>

#include "tests/tasks/data/folder.h"

namespace attn::data::files_test {
namespace {

using Lines = std::vector<std::tuple<int64_t, int64_t, std::string>>;

Lines lines_of(const std::string& bytes) {
  const Folder folder;
  folder.write("lines", bytes);
  Lines lines;
  for_each_line(File(folder.path() + "/lines"),
                [&](int64_t number, int64_t offset, std::string_view text) {
                  lines.emplace_back(number, offset, text);
                });
  return lines;
}

TEST(Files, LinesWithTheirNumbersAndOffsets) {
  EXPECT_EQ(lines_of(""), Lines());
  EXPECT_EQ(lines_of("a\n\nbc\n"), (Lines{{1, 0, "a"}, {2, 2, ""}, {3, 3, "bc"}}));
  EXPECT_EQ(lines_of("a\r\nb"), (Lines{{1, 0, "a"}, {2, 3, "b"}}));
}

// The mark is no part of the first line; offsets are of the file. Elsewhere its bytes are a text's.
TEST(Files, AByteOrderMarkIsSkipped) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(lines_of(mark + "a\nb"), (Lines{{1, 3, "a"}, {2, 5, "b"}}));
  EXPECT_EQ(lines_of(mark + "\r\nb"), (Lines{{1, 3, ""}, {2, 5, "b"}}));
  EXPECT_EQ(lines_of("a\n" + mark + "b"), (Lines{{1, 0, "a"}, {2, 2, mark + "b"}}));
}

TEST(Files, LinesAcrossBlocks) {
  constexpr size_t kBlock = size_t{1} << 20;
  for (const size_t first : {kBlock - 1, kBlock, kBlock + 1, 3 * kBlock}) {
    const std::string a(first, 'x'), b = "end";
    EXPECT_EQ(lines_of(a + "\n" + b), (Lines{{1, 0, a}, {2, static_cast<int64_t>(first) + 1, b}}));
  }
}

TEST(Files, ReadsExactlyWhatIsAskedFor) {
  const Folder folder;
  folder.write("file", "0123456789");
  const File file(folder.path() + "/file");
  EXPECT_EQ(file.size(), 10);
  EXPECT_EQ(file.read(3, 4), "3456");
  EXPECT_NE(fault_of([&] { file.read(8, 4); }).find("ends at byte 10"), std::string::npos);
  EXPECT_NE(fault_of([&] { File(folder.path()); }).find("not a file"), std::string::npos);
  EXPECT_NE(fault_of([&] { File(folder.path() + "/none"); }).find("none"), std::string::npos);
}

TEST(Files, APipeIsNotWaitedFor) {
  const Folder folder;
  const std::string path = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(fault_of([&] { File{path}; }).find("pipe': it is not a file"), std::string::npos);
}

TEST(Files, ALineWithoutEndIsNotHeldInMemory) {
  const Folder folder;
  folder.write("zeros", "first\n");
  std::filesystem::resize_file(folder.path() + "/zeros", uintmax_t{1} << 32);  // takes no room
  const auto read = [&] {
    for_each_line(File(folder.path() + "/zeros"), [](int64_t, int64_t, std::string_view) {});
  };
  EXPECT_NE(fault_of(read).find("zeros line 2: longer than"), std::string::npos);
}

TEST(Files, ADigestSeesEveryByteAndBorder) {
  const auto digest = [](const std::vector<std::string>& parts) {
    Digest d;
    for (const std::string& part : parts) d.add(part);
    return d.value();
  };
  EXPECT_EQ(digest({"abcdefghi", "j"}), digest({"abcdefghi", "j"}));
  EXPECT_NE(digest({"abcdefghi", "j"}), digest({"abcdefgh", "ij"}));
  EXPECT_NE(digest({"abcdefghi"}), digest({"abcdefghj"}));
  EXPECT_NE(digest({std::string("a\0", 2)}), digest({"a"}));
}

TEST(Files, WholeNumbers) {
  EXPECT_EQ(whole_number("12"), 12);
  for (const char* text : {"", "-5", "1x", " 1", "99999999999999999999"})
    EXPECT_EQ(whole_number(text), -1) << text;
}

TEST(Files, NamesAreSorted) {
  const Folder folder;
  for (const char* name : {"c", "a", "d", "b"}) folder.write(name, "");
  EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(Files, WhatCannotBeWrittenIsAnError) {
  EXPECT_NE(fault_of([] { write_file("/dev/full", "x"); }).find("/dev/full"), std::string::npos);
  EXPECT_NE(fault_of([] { write_file("/nowhere/x", "x"); }).find("/nowhere/x"), std::string::npos);
  EXPECT_NE(fault_of([] { make_folder("/dev/null/x"); }).find("/dev/null/x"), std::string::npos);
}

}  // namespace
}  // namespace attn::data::files_test
