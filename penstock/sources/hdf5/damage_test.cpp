// Damaged files of HDF5: `PENSTOCK_TEST_DAMAGES=20000` for the long campaign.
#include <gmock/gmock.h>

#include "penstock/base/log.h"
#include "penstock/sources/files/test_damage.h"
#include "penstock/sources/hdf5/filters/filters.h"
#include "penstock/sources/hdf5/filters/steps.h"
#include "penstock/sources/hdf5/test_writing.h"

namespace penstock::hdf5 {
namespace {

std::string written_file(const files::TestFolder& folder) {
  const std::string path = folder.path("a.h5");
  std::vector<double> x;
  std::vector<std::int64_t> y;
  std::vector<std::string> texts;
  for (int row = 0; row < 60; ++row) {
    for (int value = 0; value < 4; ++value) x.push_back(row + 0.25 * value);
    y.push_back(row);
    texts.push_back("text " + std::to_string(row));
  }
  TestFile file(path);
  file.write("x", x, {.chunk = 8, .deflate = 4, .shuffle = true}, 4);
  file.write("y", y, {.chunk = 16, .deflate = 1, .checksum = true});
  file.write("plain", y);
  file.write("texts", texts, {.chunk = 20});
  return path;
}

TEST(Damage, GivesRowsOrAnErrorThatNamesTheFile) {
  files::TestFolder folder;
  const std::string path = written_file(folder);
  set_log_level(LogLevel::off);
  files::read_damaged(Json("hdf5:" + path), path, files::damages(60), 5);
  set_log_level(LogLevel::warning);
}

TEST(Damage, OfAChunkIsAProblemOfItsRowsAlone) {
  files::TestFolder folder;
  const std::string path = folder.path("a.h5");
  std::vector<std::int64_t> y(64);
  for (std::size_t row = 0; row < y.size(); ++row)
    y[row] = static_cast<std::int64_t>(row);
  TestFile(path).write("y", y, {.chunk = 16, .checksum = true});
  std::string bytes = files::TestFolder::read(path);
  const std::int64_t some = 35;
  const std::size_t at = bytes.find(
      std::string(reinterpret_cast<const char*>(&some), sizeof(some)));
  ASSERT_NE(at, bytes.npos);
  bytes[at] = 77;
  folder.write("a.h5", bytes);
  auto source = files::open_files(Json("hdf5:" + path), {{.column = "/y"}});
  std::vector<std::int64_t> bad;
  std::string why;
  auto reader = open_checked_reader(*source);
  for (const Partition& part : source->partitions(1))
    reader->scan(part, {}, [&](KeyList& keys, Block& block) {
      for (const RowProblem& problem : block.problems) {
        bad.push_back(keys.integer(problem.row));
        why = problem.why;
      }
      for (std::int64_t row = 0; row < block.rows; ++row)
        if (block.columns[0].valid(row)) {
          EXPECT_EQ(block.columns[0].int64(row), keys.integer(row));
        }
      return true;
    });
  EXPECT_THAT(bad, testing::SizeIs(16));
  EXPECT_THAT(bad, testing::Contains(35));
  EXPECT_THAT(why, testing::HasSubstr("fletcher32"));
  EXPECT_THAT(why, testing::HasSubstr("/y"));
}

std::string why_not_opened(const std::string& path) {
  try {
    files::open_files(Json("hdf5:" + path), {{.column = "/y"}});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Such rows would have no end.
TEST(Damage, OfASizeIsNotTakenForRowsOfTheFillValue) {
  files::TestFolder folder;
  const std::string path = folder.path("a.h5");
  const std::vector<double> y(60, 1);
  TestFile(path).write("y", y, {.chunk = 16});
  std::string bytes = files::TestFolder::read(path);
  const std::string size = std::string("\x3c\0\0\0\0\0\0\0", 8);
  const std::size_t at = bytes.find(size + size);  // and the most
  ASSERT_NE(at, bytes.npos);
  bytes[at + 3] = 0x26;
  folder.write("a.h5", bytes);
  EXPECT_THAT(why_not_opened(path),
              testing::HasSubstr("637534268 along dimension 0, of 60 at most"));

  TestFile(path).write("y", y, {.chunk = 65536, .rows = 2'100'000'000});
  EXPECT_THAT(why_not_opened(path),
              testing::HasSubstr("only 1 of its 32044 chunks"));
  TestFile(path).write("y", y, {.chunk = 60, .rows = 6000});
  EXPECT_EQ(why_not_opened(path), "") << "what is sparse is read";
}

/// Any bytes, and bytes that are nearly right.
TEST(Damage, OfBytesOfAnyFilterStaysWithinTheChunk) {
  const std::vector<Filter> kinds[] = {
      {{1, "", {4}}},
      {{2, "", {8}}, {1, "", {4}}, {3, "", {}}},
      {{32000, "", {}}},
      {{32004, "", {64}}},
      {{32015, "", {}}},
      {{32001, "", {}}},
      {{32008, "", {0, 2, 4, 0, 0}}},
      {{32008, "", {0, 2, 4, 16, 2}}},
      {{32008, "", {0, 2, 4, 16, 3}}},
      {{32008, "", {}}},
      {{9, "", {}}}};
  std::mt19937_64 random(damage_seed(3));
  ChunkDecoder decoder;
  const int times = files::damages(2000);
  for (int time = 0; time < times; ++time)
    for (const std::vector<Filter>& filters : kinds) {
      std::string bytes(random() % 200, '\0');
      for (char& byte : bytes)
        byte = random() % 3 == 0 ? static_cast<char>(random()) : '\1';
      // Sizes that could be right, where a filter begins with them.
      if (bytes.size() >= 12 && random() % 2 == 0)
        bytes.replace(0, 12, std::string("\0\0\0\0\0\0\0\x40\0\0\0\x40", 12));
      std::string out(64, '\0');
      decoder.decode(filters, static_cast<std::uint32_t>(random() & 1),
                     std::as_bytes(std::span(bytes)),
                     std::as_writable_bytes(std::span(out)));
    }
}

TEST(Damage, IsLeftOutFileByFileWhereBadRowsAreSkipped) {
  files::TestFolder folder;
  for (const char* name : {"a.h5", "b.h5", "c.h5"})
    TestFile(folder.path(name)).write("y", std::vector<double>(10, 1));
  folder.write("b.h5", "\x89HDF\r\n\x1a\n" + std::string(100, '\x7f'));
  Json section = files::section_of("hdf5", folder.path(""));
  EXPECT_THROW(files::open_files(section, {{.column = "/y"}}), Error);
  section["on_bad"] = "skip";
  std::string warnings;
  set_log_writer([&](LogLevel, std::string_view text) { warnings += text; });
  EXPECT_EQ(files::open_files(section, {{.column = "/y"}})->count().rows, 20);
  set_log_writer({});
  EXPECT_THAT(warnings, testing::HasSubstr("b.h5"));
}

}  // namespace
}  // namespace penstock::hdf5
