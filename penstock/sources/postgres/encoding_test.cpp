#include <gmock/gmock.h>

#include "penstock/sources/postgres/test_server.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A database that keeps bytes of any encoding, with the rows
///   name   text    'b', and 'a' with the byte 0xff behind it
///   note   text    'x', and the byte 0xe4
///   items  json    ["k"], and a text of the byte 0xfc
class PostgresSqlAscii : public testing::Test {
 protected:
  void SetUp() override {
    schema_.execute("CREATE DATABASE " + schema_.name() +
                    " ENCODING SQL_ASCII LOCALE 'C' TEMPLATE template0");
    uri_ = test_postgres();
    uri_.replace(uri_.find("/postgres?") + 1, 8, schema_.name());
    TestSession(uri_).execute(
        "CREATE TABLE t(id int PRIMARY KEY, name text UNIQUE NOT NULL, note "
        "text, items json); INSERT INTO t VALUES (1, 'b', 'x', '[\"k\"]'), (2, "
        "convert_from('\\x61ff', 'SQL_ASCII'), convert_from('\\xe4', "
        "'SQL_ASCII'), convert_from('\\x5b22fc225d', 'SQL_ASCII')::json)");
  }
  void TearDown() override {
    if (uri_.empty()) return;  // skipped
    schema_.execute("DROP DATABASE " + schema_.name() + " WITH (FORCE)");
  }
  SourceSpec spec(const std::string& key, const std::string& table = "t") {
    SourceSpec spec;
    spec.kind = "postgres";
    spec.uri = uri_;
    spec.table = table;
    if (!key.empty()) spec.key = {key};
    return spec;
  }

  TestSchema schema_;
  std::string uri_;
};

TEST_F(PostgresSqlAscii, NamesRowAndColumnOfAKeyThatIsNoUtf8) {
  auto source = open_source(spec("name"), {});
  Error error = error_of([&] { scan_all(*source); });
  EXPECT_EQ(error.kind(), ErrorKind::source);
  EXPECT_EQ(error.parts().code, "source.bad_key");
  EXPECT_EQ(error.parts().what, "cannot use the key 'name' of table 't'");
  EXPECT_THAT(error.parts().where, HasSubstr("row number 2 of all rows"));
  EXPECT_EQ(error.parts().why,
            "the key holds text x'61ff', which is not UTF-8");
  EXPECT_THAT(error.parts().next,
              AllOf(HasSubstr("CREATE VIEW v"), HasSubstr("'LATIN1'")));
}

TEST_F(PostgresSqlAscii, IsReadByTheViewThatTheErrorNames) {
  auto source = open_source(spec("name"), {});
  std::string next = error_of([&] { scan_all(*source); }).parts().next;
  std::string view = next.substr(next.find("CREATE VIEW"));
  view.replace(view.find("..."), 3, "id");
  TestSession(uri_).execute(view);
  auto converted = open_source(spec("name", "v"), {{"id", ReadAs::integer}});
  Block block;
  converted->open_reader()->read(text_keys({"a\xc3\xbf", "b"}), block);
  EXPECT_EQ(block.columns[0].int64(0), 2);
  EXPECT_EQ(block.columns[0].int64(1), 1);
  EXPECT_EQ(scan_all(*converted).rows, 2);
}

TEST_F(PostgresSqlAscii, ReadsTheRowsWhoseKeysAreUtf8) {
  SourceSpec some = spec("name");
  some.where = "id = 1";
  auto source = open_source(some, {{"note", ReadAs::value}});
  Block block;
  source->open_reader()->read(text_keys({"b"}), block);
  EXPECT_EQ(block.columns[0].text(0), "x");
}

TEST_F(PostgresSqlAscii, HandsOutTheBytesOfOtherColumns) {
  auto source = open_source(spec("id"),
                            {{"note", ReadAs::value}, {"items", ReadAs::json}});
  Block block;
  source->open_reader()->read(integer_keys({2, 1}), block);
  EXPECT_TRUE(block.problems.empty());
  EXPECT_EQ(block.columns[0].text(0), "\xe4");
  EXPECT_EQ(block.columns[1].text(0), "[\"\xfc\"]");
  EXPECT_EQ(block.columns[1].text(1), "[\"k\"]");
}

TEST_F(PostgresSqlAscii, ShowsTheBytesOfATextThatIsNoNumber) {
  Block block = scan_all(*open_source(spec("id"), {{"note", ReadAs::number}}));
  ASSERT_EQ(block.problems.size(), 2u);
  EXPECT_EQ(block.problems[1].row, 1);
  EXPECT_EQ(
      block.problems[1].why,
      "holds text x'e4', which is not UTF-8 where a number or an ISO-8601 "
      "time is expected");
}

TEST_F(PostgresSqlAscii, TakesWhatIsWrittenIntoIt) {
  auto writer = create_table(
      spec("", "u"),
      {{.name = "k", .type = ColumnType::text, .primary_key = true}}, false);
  Block block;
  block.columns.push_back({.type = ColumnType::text});
  block.columns[0].append_text("\xc3\xa4");
  block.rows = 1;
  writer->write(block);
  writer->finish();
  EXPECT_EQ(scan_all(*open_source(spec("", "u"), {})).keys.bytes(0),
            "\xc3\xa4");
}

TEST(PostgresLatin1, ComesInUtf8) {
  TestSchema schema;
  if (testing::Test::IsSkipped() || testing::Test::HasFatalFailure()) return;
  schema.execute("CREATE DATABASE " + schema.name() +
                 " ENCODING LATIN1 LOCALE 'C' TEMPLATE template0");
  SourceSpec spec;
  spec.kind = "postgres";
  spec.uri = test_postgres();
  spec.uri.replace(spec.uri.find("/postgres?") + 1, 8, schema.name());
  spec.table = "t";
  TestSession(spec.uri).execute(
      "CREATE TABLE t(k text PRIMARY KEY); INSERT INTO t VALUES ('\xc3\xa4')");
  EXPECT_EQ(scan_all(*open_source(spec, {})).keys.bytes(0), "\xc3\xa4");
  schema.execute("DROP DATABASE " + schema.name() + " WITH (FORCE)");
}

}  // namespace
}  // namespace penstock
