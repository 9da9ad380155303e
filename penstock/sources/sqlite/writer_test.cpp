#include <gmock/gmock.h>

#include <limits>

#include "penstock/sources/sqlite/test_database.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

const std::vector<NewColumn> kColumns = {
    {.name = "id", .type = ColumnType::int64, .primary_key = true},
    {.name = "at", .type = ColumnType::float64, .declared = "TIMESTAMP"},
    {.name = "band", .type = ColumnType::text},
    {.name = "items", .type = ColumnType::json},
    {.name = "seen", .type = ColumnType::boolean}};

Block rows(std::int64_t from, std::int64_t to) {
  Block block;
  for (const NewColumn& column : kColumns)
    block.columns.emplace_back().type = column.type;
  for (std::int64_t i = from; i < to; ++i) {
    block.columns[0].append_int64(i);
    block.columns[1].append_float64(static_cast<double>(i) + 0.947);
    i % 4 == 3 ? block.columns[2].append_null()
               : block.columns[2].append_text(i % 4 == 2 ? "" : "it's \"b\"");
    block.columns[3].append_text("[" + std::to_string(i) + "]");
    block.columns[4].append_boolean(i % 2 == 0);
    ++block.rows;
  }
  return block;
}

void write(const SourceSpec& spec, std::int64_t count, bool replace = false) {
  auto writer = create_table(spec, kColumns, replace);
  writer->write(rows(0, count / 2));
  writer->write(rows(count / 2, count));
  writer->finish();
}

TEST(SqliteWriter, MakesAFileThatASourceReads) {
  TestDatabase database;
  write(database.spec(), 10);
  auto source = open_source(database.spec(), {{"at", ReadAs::number},
                                              {"band", ReadAs::value},
                                              {"items", ReadAs::json},
                                              {"seen", ReadAs::number}});
  EXPECT_TRUE(source->schema().find("at")->timestamp);
  EXPECT_TRUE(source->schema().find("seen")->boolean);
  EXPECT_TRUE(source->schema().find("id")->primary_key);
  ScannedBlock block = scan_all(*source);
  ASSERT_EQ(block.rows, 10);
  EXPECT_TRUE(block.problems.empty());
  EXPECT_EQ(block.keys.integer(7), 7);
  EXPECT_EQ(block.columns[0].float64(7), 7.947);
  EXPECT_FALSE(block.columns[1].valid(7));
  EXPECT_EQ(block.columns[1].text(8), "it's \"b\"");
  EXPECT_EQ(block.columns[2].text(7), "[7]");
  EXPECT_EQ(block.columns[3].float64(7), 0.0);
  EXPECT_EQ(block.columns[3].float64(8), 1.0);
}

TEST(SqliteWriter, KeepsAnEmptyTextApartFromNull) {
  TestDatabase database;
  auto writer = create_table(database.spec(),
                             {{.name = "a", .type = ColumnType::text}}, false);
  Block block;
  block.columns.emplace_back().type = ColumnType::text;
  block.columns[0].append_text("");
  block.rows = 1;
  writer->write(block);
  writer->finish();
  EXPECT_EQ(database.ask("SELECT typeof(a) FROM t"), "text");
}

TEST(SqliteWriter, KeepsTheOrdinaryJournal) {
  TestDatabase database;
  write(database.spec(), 4);
  EXPECT_EQ(database.ask("PRAGMA journal_mode"), "delete");
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(database.folder()), {}),
      1);
}

TEST(SqliteWriter, ShowsNothingBeforeItHasFinished) {
  TestDatabase database("CREATE TABLE other(a)");
  auto writer = create_table(database.spec(), kColumns, false);
  writer->write(rows(0, 10));
  EXPECT_EQ(database.ask("SELECT count(*) FROM sqlite_master"), "1");
  writer->finish();
  EXPECT_EQ(database.ask("SELECT count(*) FROM t"), "10");
}

TEST(SqliteWriter, RefusesATableThatIsThere) {
  TestDatabase database;
  write(database.spec(), 4);
  Error error = error_of([&] { write(database.spec(), 2); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "source.table_exists");
  EXPECT_EQ(database.ask("SELECT count(*) FROM t"), "4");
}

TEST(SqliteWriter, RefusesATableThatIsThereInOtherLetters) {
  TestDatabase database("CREATE TABLE T(a)");
  Error error = error_of([&] { write(database.spec(), 2); });
  EXPECT_EQ(error.parts().code, "source.table_exists");
}

TEST(SqliteWriter, ReplacesWhenAsked) {
  TestDatabase database;
  write(database.spec(), 4);
  write(database.spec(), 20, true);
  EXPECT_EQ(database.ask("SELECT count(*) FROM t"), "20");
}

TEST(SqliteWriter, ReplacesNoView) {
  TestDatabase database("CREATE VIEW t AS SELECT 1");
  Error error = error_of([&] { write(database.spec(), 2, true); });
  EXPECT_EQ(error.parts().code, "source.table_exists");
  EXPECT_THAT(error.what(), HasSubstr("view"));
}

TEST(SqliteWriter, LeavesWhatWasThereWhenItIsNotFinished) {
  TestDatabase database;
  write(database.spec(), 4);
  create_table(database.spec(), kColumns, true)->write(rows(0, 100));
  EXPECT_EQ(database.ask("SELECT count(*) FROM t"), "4");
}

TEST(SqliteWriter, LeavesNoFileWhenItIsNotFinished) {
  TestDatabase database;
  create_table(database.spec(), kColumns, false)->write(rows(0, 100));
  EXPECT_TRUE(std::filesystem::is_empty(database.folder()));
}

TEST(SqliteWriter, LeavesOtherTablesAlone) {
  TestDatabase database("CREATE TABLE other(a); INSERT INTO other VALUES (1)");
  write(database.spec(), 4);
  EXPECT_EQ(database.ask("SELECT count(*) FROM other"), "1");
}

TEST(SqliteWriter, NeedsItsFolder) {
  TestDatabase database;
  SourceSpec spec = database.spec();
  spec.path = database.folder() + "/missing/a.sqlite";
  Error error = error_of([&] { write(spec, 2); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "sqlite.no_folder");
  EXPECT_FALSE(std::filesystem::exists(database.folder() + "/missing"));
}

TEST(SqliteWriter, IsNotGivenAFolder) {
  TestDatabase database;
  SourceSpec spec = database.spec();
  spec.path = database.folder();
  EXPECT_EQ(error_of([&] { write(spec, 2); }).parts().code, "sqlite.folder");
}

TEST(SqliteWriter, SaysThatItMayNotWrite) {
  TestDatabase database;
  write(database.spec(), 2);
  std::filesystem::permissions(database.path(), std::filesystem::perms(0444));
  AsOrdinaryUser nobody;
  Error error = error_of([&] { write(database.spec("u"), 2); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.access");
}

TEST(SqliteWriter, PassesOnWhatSqliteRefuses) {
  TestDatabase database;
  auto writer = create_table(database.spec(), kColumns, false);
  Block twice = rows(0, 1);
  writer->write(twice);
  Error error = error_of([&] { writer->write(twice); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.failed");
  EXPECT_THAT(error.what(), HasSubstr("UNIQUE constraint failed: t.id"));
}

TEST(SqliteWriter, SaysThatTheDiskIsFullAndLeavesWhatWasThere) {
  TestDatabase database;
  write(database.spec(), 4);
  Error error = error_of([&] {
    auto writer = create_table(database.spec(), kColumns, true);
    writer->write(rows(0, 100));
    FailingCalls writing({"write", "pwrite", "pwrite64"}, ENOSPC);
    writer->finish();
  });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "sqlite.disk_full");
  EXPECT_EQ(database.ask("SELECT count(*) FROM t"), "4");
}

TEST(SqliteWriter, NeedsANameForTheTable) {
  TestDatabase database;
  Error error = error_of([&] { write(database.spec(""), 2); });
  EXPECT_EQ(error.kind(), ErrorKind::request);
  EXPECT_EQ(error.parts().code, "source.no_table");
}

TEST(SqliteWriter, RefusesTypesThatSqliteDoesNotHave) {
  TestDatabase database;
  for (ColumnType type : {ColumnType::uuid, ColumnType::list}) {
    Error error = error_of([&] {
      create_table(database.spec(), {{.name = "a", .type = type}}, false);
    });
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "sqlite.type");
  }
  EXPECT_TRUE(std::filesystem::is_empty(database.folder()));
}

TEST(SqliteWriter, RefusesBlocksOfAnotherShape) {
  TestDatabase database;
  auto writer = create_table(database.spec(), kColumns, false);
  Block narrow;
  narrow.columns.resize(1);
  EXPECT_EQ(error_of([&] { writer->write(narrow); }).kind(),
            ErrorKind::internal);
  Block other = rows(0, 1);
  other.columns[2].type = ColumnType::float64;
  EXPECT_EQ(error_of([&] { writer->write(other); }).kind(),
            ErrorKind::internal);
}

TEST(SqliteWriter, TakesNoNan) {
  TestDatabase database;
  auto writer = create_table(
      database.spec(), {{.name = "a", .type = ColumnType::float64}}, false);
  Block block;
  block.columns.emplace_back().type = ColumnType::float64;
  block.columns[0].append_float64(std::numeric_limits<double>::quiet_NaN());
  block.rows = 1;
  EXPECT_EQ(error_of([&] { writer->write(block); }).kind(),
            ErrorKind::internal);
}

TEST(SqliteWriter, IsFinishedOnce) {
  TestDatabase database;
  auto writer = create_table(database.spec(), kColumns, false);
  writer->finish();
  EXPECT_EQ(error_of([&] { writer->finish(); }).kind(), ErrorKind::internal);
  EXPECT_EQ(error_of([&] { writer->write(rows(0, 1)); }).kind(),
            ErrorKind::internal);
}

}  // namespace
}  // namespace penstock
