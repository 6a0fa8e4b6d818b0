// Rows files survive what happens to files: a kill in mid-write, a full disk, two writers,
// strangers' files.
#include "harness/store/rows.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "core/base/io_error.h"
#include "tests/harness/store/sample_rows.h"
#include "tests/said.h"

namespace attn::rows_test {
namespace {

class Rows : public testing::Test {
 protected:
  Rows() : path_(testing::TempDir() + "rows_test_" + std::to_string(::getpid()) + ".jsonl") {
    std::filesystem::remove(path_);
  }
  ~Rows() override { std::filesystem::remove(path_); }

  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& text) const {
    std::ofstream(path_, std::ios::binary | std::ios::app) << text;
  }
  void write_two() const {
    RowWriter writer(path_);
    writer.append(sample_run());
    writer.append(sample_cell("speed"));
  }
  // The message of the Error that `body` throws; fails when it throws none.
  template <class Body>
  std::string error_of(const Body& body) const {
    const std::string fault = fault_of(body);
    EXPECT_NE(fault, "") << "no Error";
    return fault;
  }

  std::string path_;
};

TEST_F(Rows, ReadBackAsWritten) {
  write_two();
  const std::vector<Json> rows = read_rows(path_);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0], sample_run());
  EXPECT_EQ(rows[1], sample_cell("speed"));
}

TEST_F(Rows, ResumeAfterAKillAtEveryByteOfALine) {
  write_two();
  const std::string whole = text();
  const std::string line = sample_cell("memory").dump();
  for (size_t cut = 0; cut <= line.size(); cut += 7) {
    put(line.substr(0, cut));
    if (cut > 0) {
      EXPECT_TRUE(says(error_of([&] { read_rows(path_); }), ":3: torn line"));
    }
    EXPECT_EQ(read_rows(path_, true).size(), 2u);
    RowWriter writer(path_);
    EXPECT_EQ(writer.existing().size(), 2u);
    EXPECT_EQ(text(), whole);
  }
}

TEST_F(Rows, ATornFirstLineStartsOver) {
  put(sample_run().dump().substr(0, 12));
  RowWriter writer(path_);
  EXPECT_TRUE(writer.existing().empty());
  writer.append(sample_run());
  EXPECT_EQ(read_rows(path_).size(), 1u);
}

TEST_F(Rows, AFileOfNulsAloneIsEmpty) {
  put(std::string(5000, '\0'));
  RowWriter writer(path_);
  EXPECT_TRUE(writer.existing().empty());
  EXPECT_EQ(text(), "");
  writer.append(sample_run());
  EXPECT_EQ(read_rows(path_).size(), 1u);
}

TEST_F(Rows, LeavesStrangersFilesAlone) {
  put("dear diary");
  for (const bool truncate : {false, true}) {
    EXPECT_TRUE(says(error_of([&] { RowWriter(path_, truncate); }), "not a rows file"));
  }
  EXPECT_EQ(text(), "dear diary");
}

// Which an editor wrote, where somebody looked at the rows.
TEST_F(Rows, AByteOrderMarkIsSkipped) {
  write_two();
  const std::string rows = text();
  std::filesystem::remove(path_);
  put("\xEF\xBB\xBF" + rows);
  EXPECT_EQ(read_rows(path_).size(), 2u);
  RowWriter writer(path_);
  EXPECT_EQ(writer.existing().size(), 2u);
  writer.append(sample_cell("memory"));
  EXPECT_EQ(read_rows(path_).size(), 3u);
}

TEST_F(Rows, TruncateStartsOver) {
  write_two();
  RowWriter writer(path_, true);
  EXPECT_TRUE(writer.existing().empty());
  EXPECT_EQ(text(), "");
}

TEST_F(Rows, NameTheLineOfAFault) {
  write_two();
  Json bad = sample_cell("speed");
  bad["status"] = "fine";
  put(bad.dump() + "\n");
  const std::string expected = path_ + ":3: status: expected one of";
  EXPECT_EQ(error_of([&] { read_rows(path_); }).substr(0, expected.size()), expected);
  EXPECT_EQ(error_of([&] { RowWriter{path_}; }).substr(0, expected.size()), expected);
  std::filesystem::remove(path_);
  write_two();
  put("{\"schema\":NaN}\n");
  EXPECT_EQ(error_of([&] { read_rows(path_); }), path_ + ":3: not JSON");
}

TEST_F(Rows, AFlippedBitInAFigureIsSeen) {
  write_two();
  std::string damaged = text();
  const size_t figure = damaged.rfind("\"duration_s\":") + 13;
  damaged[figure] = static_cast<char>(damaged[figure] ^ 1);
  std::filesystem::remove(path_);
  put(damaged);
  const std::string expected =
      path_ + ":2: the line was changed after it was written: its checksum does not match";
  EXPECT_EQ(error_of([&] { read_rows(path_); }), expected);
  EXPECT_EQ(error_of([&] { RowWriter{path_}; }).substr(0, expected.size() + 25),
            expected + "; take that line out, and");
  EXPECT_EQ(text(), damaged);
}

// What to do depends on what the line is.
TEST_F(Rows, ADamagedLineIsNamedWithWhatToDo) {
  const std::string bad_run = "{\"schema\":\"attnbench/1\",\"kind\":\"run\",\"run\":7}\n";
  const auto ending = [&](const std::string& text) {
    std::filesystem::remove(path_);
    put(text);
    const std::string message = error_of([&] { RowWriter{path_}; });
    return message.substr(message.rfind(';') + 2);
  };
  const std::string run = sample_run().dump() + "\n";
  Json other = sample_run();
  other["run"] = "r2";
  EXPECT_EQ(ending(bad_run), "name another output file, or --force to start over");
  EXPECT_EQ(ending(run + bad_run), "take that line out: it holds no cell");
  EXPECT_EQ(ending(run + "{}\n"), "take that line out, and its cell is measured again");
  EXPECT_EQ(
      ending(run + other.dump() + "\n"),
      "a file holds one run: keep the files of two runs apart, or join them by attnbench merge");
}

TEST_F(Rows, ALineWithoutChecksumIsOfAnEarlierVersion) {
  put(sample_run().dump() + "\n" + sample_cell("speed").dump() + "\n");
  EXPECT_EQ(read_rows(path_).size(), 2u);
}

TEST_F(Rows, BeginWithTheirRun) {
  RowWriter writer(path_);
  EXPECT_THROW(writer.append(sample_cell("speed")), Error);
  writer.append(sample_run());
  writer.append(sample_cell("speed"));
  Json other = sample_cell("speed");
  other["run"] = "r2";
  EXPECT_THROW(writer.append(other), Error);
  Json second = sample_run();
  second["run"] = "r2";
  EXPECT_THROW(writer.append(second), Error);
  EXPECT_EQ(read_rows(path_).size(), 2u);
  put(second.dump() + "\n");
  EXPECT_TRUE(says(error_of([&] { read_rows(path_); }), ":3: run: r2 is not the run"));
}

TEST_F(Rows, ARunLineOfTheSameIdMayFollow) {
  RowWriter writer(path_);
  writer.append(sample_run());
  writer.append(sample_cell("speed"));
  writer.append(sample_run());
  EXPECT_EQ(read_rows(path_).size(), 3u);
}

TEST_F(Rows, RefuseNaN) {
  RowWriter writer(path_);
  writer.append(sample_run());
  Json cell = sample_cell("speed");
  cell["metrics"]["time_s"]["median"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(says(error_of([&] { writer.append(cell); }), "metrics.time_s.median: NaN"));
  EXPECT_EQ(read_rows(path_).size(), 1u);
}

TEST_F(Rows, RefuseTextThatIsNotUtf8) {
  RowWriter writer(path_);
  writer.append(sample_run());
  Json cell = sample_cell("speed", "failed");
  cell["reason"] = "\xff\xfe";
  EXPECT_THROW(writer.append(cell), Error);
}

TEST_F(Rows, AreWrittenByOneRunAtATime) {
  write_two();
  const RowWriter writer(path_);
  EXPECT_TRUE(says(error_of([&] { RowWriter{path_}; }), "another run is writing"));
  EXPECT_EQ(read_rows(path_).size(), 2u);  // reading needs no lock
}

TEST_F(Rows, AFullDeviceIsAnErrorWithItsName) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  RowWriter writer("/dev/full");
  const std::string message = error_of([&] { writer.append(sample_run()); });
  EXPECT_EQ(message.substr(0, 10), "/dev/full:");
  EXPECT_TRUE(says(message, "No space left"));
}

// A file size limit makes write() stop half way, as a disk that fills up does.
TEST_F(Rows, AHalfWrittenLineIsTakenBack) {
  RowWriter writer(path_);
  writer.append(sample_run());
  const std::string before = text();
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{before.size() + 100, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(writer.append(sample_cell("speed")), Error);
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(text(), before);
  writer.append(sample_cell("speed"));
  EXPECT_EQ(read_rows(path_).size(), 2u);
}

TEST_F(Rows, WhatTheSystemRefusesIsAnErrorOfItsOwnKind) {
  EXPECT_THROW(RowWriter{"/no/such/folder/rows.jsonl"}, IoError);
  EXPECT_THROW(RowWriter{testing::TempDir()}, IoError);
  EXPECT_THROW(read_rows("/no/such/rows.jsonl"), IoError);
  EXPECT_THROW(read_rows(testing::TempDir()), IoError);
  RowWriter full("/dev/full");
  EXPECT_THROW(full.append(sample_run()), IoError);
  put("dear diary\n");
  try {
    read_rows(path_);
    ADD_FAILURE() << "no Error";
  } catch (const Error& error) {
    EXPECT_EQ(dynamic_cast<const IoError*>(&error), nullptr) << "what a file says is no such fault";
  }
}

TEST_F(Rows, UnusablePathsAreErrors) {
  EXPECT_TRUE(says(error_of([] { RowWriter{"/no/such/folder/rows.jsonl"}; }), "No such file"));
  EXPECT_TRUE(says(error_of([] { read_rows("/no/such/rows.jsonl"); }), "/no/such/rows.jsonl"));
  EXPECT_THROW(read_rows(testing::TempDir()), Error);
  put("");
  EXPECT_TRUE(says(error_of([&] { read_rows(path_); }), "no rows"));
}

TEST(HashOf, IgnoresTheOrderOfKeysAndTheWayANumberIsWritten) {
  const auto hash = [](const char* text) { return hash_of(Json::parse(text)); };
  EXPECT_EQ(hash(R"({"a": 1, "b": {"c": [1, 0.1], "d": true}})"),
            hash(R"({"b": {"d": true, "c": [1.0, 1e-1]}, "a": 1.0})"));
  EXPECT_NE(hash("[1, 2]"), hash("[2, 1]"));
  EXPECT_NE(hash("[12]"), hash("[1, 2]"));
  EXPECT_NE(hash(R"("1")"), hash("1"));
  EXPECT_NE(hash("true"), hash("1"));
  EXPECT_NE(hash("{}"), hash("[]"));
  EXPECT_EQ(hash("{}").size(), 16u);
}

// The 64-bit FNV-1a of "a", from the published test vectors, and of the canonical text written by
// hand.
TEST(HashOf, IsFnv1aOfTheCanonicalText) {
  const auto fnv = [](const std::string& text) {
    unsigned long long hash = 14695981039346656037ULL;
    for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211ULL;
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", hash);
    return std::string(digits);
  };
  ASSERT_EQ(fnv("a"), "af63dc4c8601ec8c");
  const Json value = Json::parse(R"({"z": [1.0, 0.25, 1e300], "a": {"y": null, "x": "q\"\n"}})");
  EXPECT_EQ(hash_of(value), fnv(R"({"a":{"x":"q\"\n","y":null},"z":[1,0.25,1e+300]})"));
}

TEST(Values, TimesAndNumbersKeepTheSchema) {
  Json cell = sample_cell("speed");
  cell["started_at"] = utc_now();
  EXPECT_EQ(schema_fault(cell), "");
  EXPECT_EQ(finite_or_null(0.5), Json(0.5));
  EXPECT_TRUE(finite_or_null(std::numeric_limits<double>::quiet_NaN()).is_null());
  EXPECT_TRUE(finite_or_null(-std::numeric_limits<double>::infinity()).is_null());
}

TEST_F(Rows, CellsAreTakenOutOfAFileAtOnce) {
  write_two();
  Json other = sample_cell("memory");
  other["cell"] = "00000000000000ff";
  {
    RowWriter writer(path_);
    writer.append(other);
  }
  RowWriter writer(path_);
  writer.drop({"0123456789abcdef", "not there"});
  EXPECT_EQ(read_rows(path_), std::vector<Json>({sample_run(), other}));
  EXPECT_EQ(writer.existing().size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".draft"));
  EXPECT_THROW(RowWriter second(path_), Error) << "the new file is locked, too";
  writer.append(sample_cell("speed"));
  EXPECT_EQ(read_rows(path_), std::vector<Json>({sample_run(), other, sample_cell("speed")}));
}

TEST_F(Rows, AFileOfMergedRunsIsNotGoneOnWith) {
  Json run = sample_run();
  run["merged"] = true;
  put(row_line(path_, run) + row_line(path_, sample_cell("speed")));
  const std::string before = text();
  const std::string fault = error_of([&] { RowWriter writer(path_); });
  EXPECT_TRUE(says(fault, "was merged from 1 run;"));
  EXPECT_EQ(text(), before);
  EXPECT_EQ(read_rows(path_).size(), 2u);
}

TEST_F(Rows, AFileIsReplacedAsAWholeBehindALinkToo) {
  const std::string link = path_ + ".link";
  put("before");
  std::filesystem::remove(link);
  std::filesystem::create_symlink(path_, link);
  replace_file(link, "after");
  EXPECT_EQ(text(), "after");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  std::filesystem::remove(link);
  EXPECT_THROW(replace_file(testing::TempDir() + "no such folder/rows", "x"), IoError);
}

}  // namespace
}  // namespace attn::rows_test
