// Conditions over files, side by side with SQLite.
#include "penstock/sources/files/where.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <random>

#include "penstock/base/error.h"

namespace penstock::files {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Random = std::mt19937_64;

/// A table of numbers, texts, booleans and NULLs, here and in SQLite.
class WhereTest : public testing::Test {
 protected:
  WhereTest() {
    columns_ = {{"a", "int64", ColumnType::int64},
                {"b", "float64", ColumnType::float64},
                {"s", "text", ColumnType::text},
                {"t", "text", ColumnType::text},
                {"flag", "bool", ColumnType::boolean},
                {"small", "int8", ColumnType::number(Dtype::int8)},
                {"Wide Name", "int64", ColumnType::int64},
                {"when", "timestamp", ColumnType::float64, true},
                {"tags", "list", ColumnType::list}};
    for (const FileColumn& column : columns_)
      block_.columns.emplace_back().type = column.type;
    block_.columns.back().children.emplace_back();
    EXPECT_EQ(sqlite3_open(":memory:", &database_), SQLITE_OK);
    run("CREATE TABLE t (a INTEGER, b REAL, s TEXT, t TEXT, flag INTEGER, "
        "small INTEGER, \"Wide Name\" INTEGER, \"when\" REAL)");
    run("BEGIN");
    Random random(7);
    for (int row = 0; row < 2500; ++row) add_row(random);
    run("COMMIT");
  }
  ~WhereTest() override { sqlite3_close(database_); }

  static std::string any_of(Random& random,
                            const std::vector<std::string>& list) {
    return list[random() % list.size()];
  }

  static std::string integer(Random& random) {
    return any_of(random, {"0", "1", "2", "3", "-1", "7", "100", "-128",
                           "9007199254740993", "-9223372036854775807"});
  }
  static std::string real(Random& random) {
    return any_of(random, {"0.0", "0.5", "1.0", "2.5", "-3.25", "100.0",
                           "1e300", "9007199254740992.0", "-0.0", "3.0"});
  }
  static std::string text(Random& random) {
    return any_of(random, {"''", "'a'", "'A'", "'ab'", "'b'", "'\xc3\xa4'",
                           "'a%b'", "'x_y'", "'it''s'", "'Zebra'",
                           "'\xe2\x82\xac"
                           "uro'"});
  }

  void add_row(Random& random) {
    auto null = [&] { return random() % 6 == 0; };
    std::string sql = "INSERT INTO t VALUES (";
    for (std::size_t c = 0; c + 1 < block_.columns.size(); ++c) {
      Column& to = block_.columns[c];
      std::string value = "NULL";
      if (null()) {
        to.append_null();
      } else if (to.type.is_text()) {
        value = text(random);
        std::string plain;
        for (std::size_t at = 1; at + 1 < value.size(); ++at) {
          plain += value[at];
          if (value[at] == '\'') ++at;
        }
        to.append_text(plain);
      } else if (to.type == ColumnType::float64) {
        value = real(random);
        to.append_float64(std::stod(value));
      } else if (to.type == ColumnType::boolean) {
        value = random() % 2 ? "1" : "0";
        to.append_boolean(value == "1");
      } else if (to.type == ColumnType::int64) {
        value = integer(random);
        to.append_int64(std::stoll(value));
      } else {
        value = std::to_string(static_cast<int>(random() % 256) - 128);
        to.append_number(static_cast<std::int8_t>(std::stoi(value)));
      }
      sql += (c == 0 ? "" : ", ") + value;
    }
    block_.columns.back().append_list();
    ++block_.rows;
    run(sql + ")");
  }

  void run(const std::string& sql) {
    char* error = nullptr;
    sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, &error);
    EXPECT_EQ(error, nullptr) << sql << ": " << error;
  }

  std::vector<std::int64_t> in_sqlite(const std::string& condition) {
    std::vector<std::int64_t> rows;
    sqlite3_stmt* statement = nullptr;
    std::string sql =
        "SELECT rowid - 1 FROM t WHERE " + condition + " ORDER BY rowid";
    EXPECT_EQ(
        sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr),
        SQLITE_OK)
        << condition << ": " << sqlite3_errmsg(database_);
    while (sqlite3_step(statement) == SQLITE_ROW)
      rows.push_back(sqlite3_column_int64(statement, 0));
    sqlite3_finalize(statement);
    return rows;
  }

  std::vector<std::int64_t> here(const std::string& condition) {
    Where where(condition, columns_);
    // The block has the columns in the order of the condition's.
    Block seen;
    seen.rows = block_.rows;
    for (std::size_t column : where.columns()) {
      const Column& from = block_.columns[column];
      Column& to = seen.columns.emplace_back();
      to.type = from.type;
      to.length = from.length;
      to.validity = Bytes::borrow(from.validity.span(), keep_);
      to.offsets = Bytes::borrow(from.offsets.span(), keep_);
      to.values = Bytes::borrow(from.values.span(), keep_);
      for (const Column& child : from.children)
        to.children.emplace_back().type = child.type;
    }
    std::vector<std::int64_t> rows;
    where.select(seen, 0, rows);
    return rows;
  }

  std::string refusal(const std::string& condition) {
    try {
      Where where(condition, columns_);
    } catch (const Error& error) {
      EXPECT_EQ(error.parts().code, "source.where");
      return error.what();
    }
    return "accepted";
  }

  // A random condition of a depth.
  static std::string number_of(Random& random) {
    return any_of(random, {"a", "b", "small", "\"Wide Name\"", "flag", "A"});
  }
  static std::string number_value(Random& random) {
    std::string value = random() % 2 ? integer(random) : real(random);
    if (random() % 12 == 0) return "NULL";
    return random() % 10 == 0 ? any_of(random, {"TRUE", "FALSE"}) : value;
  }
  static std::string predicate(Random& random) {
    const bool texts = random() % 3 == 0;
    std::string left = texts ? any_of(random, {"s", "t"}) : number_of(random);
    auto right = [&] {
      if (random() % 5 == 0)
        return texts ? any_of(random, {"s", "t"}) : number_of(random);
      if (!texts) return number_value(random);
      return random() % 12 == 0 ? std::string("NULL") : text(random);
    };
    std::string no = random() % 2 ? " NOT" : "";
    switch (random() % 7) {
      case 0:
        return left + " IS" + no + " NULL";
      case 1:
        return left + no + " BETWEEN " + right() + " AND " + right();
      case 2: {
        std::string list = left + no + " IN (" + right();
        for (std::size_t more = random() % 4; more > 0; --more)
          list += ", " + right();
        return list + ")";
      }
      case 3:
        if (texts)
          return left + no + " LIKE '" +
                 any_of(random, {"%", "a%", "%B", "_", "__", "%\xc3\xa4%",
                                 "%a%b%", "", "a!%b", "%!_%", "_uro", "Z%a"}) +
                 "'" + (random() % 2 ? " ESCAPE '!'" : "");
        return left;
      default:
        return left + " " +
               any_of(random, {"=", "==", "<>", "!=", "<", "<=", ">", ">="}) +
               " " + right();
    }
  }
  static std::string condition(Random& random, int depth) {
    if (depth == 0) return predicate(random);
    std::string left = condition(random, depth - 1);
    std::string right = condition(
        random, static_cast<int>(random() % static_cast<unsigned>(depth)));
    switch (random() % 5) {
      case 0:
        return "NOT (" + left + ")";
      case 1:
        return "(" + left + ") and (" + right + ")";
      case 2:
        return "(" + left + " OR " + right + ")";
      case 3:
        return left + " AND " + right;
      default:
        return left + " or NOT " + right;
    }
  }

  std::vector<FileColumn> columns_;
  Block block_;
  std::shared_ptr<const void> keep_ = std::make_shared<int>(0);
  sqlite3* database_ = nullptr;
};

TEST_F(WhereTest, SelectsTheRowsThatSqliteSelects) {
  Random random(2026);
  std::size_t some = 0;
  for (int number = 0; number < 10'000; ++number) {
    std::string text = condition(random, static_cast<int>(random() % 4));
    std::vector<std::int64_t> expected = in_sqlite(text);
    ASSERT_EQ(here(text), expected) << text;
    some += !expected.empty() && expected.size() < 2500;
  }
  EXPECT_GT(some, 5000u) << "conditions that select some rows and leave others";
}

TEST_F(WhereTest, ComparesTimesWithTexts) {
  std::vector<std::int64_t> rows = here("when >= '1970-01-01 00:01:40'");
  EXPECT_EQ(rows, in_sqlite("\"when\" >= 100"));
  EXPECT_THAT(refusal("when > 'soon'"), AllOf(HasSubstr("'soon' is not a time"),
                                              HasSubstr("character 8")));
}

TEST_F(WhereTest, RefusesByNameAndPositionWhatItDoesNotKnow) {
  EXPECT_THAT(refusal("a + 1 > 2"),
              AllOf(HasSubstr("'+'"), HasSubstr("character 3")));
  EXPECT_THAT(refusal("abs(a) > 1"), HasSubstr("'abs'"));
  EXPECT_THAT(refusal("a > 1 LIMIT 3"), HasSubstr("'LIMIT'"));
  EXPECT_THAT(refusal("a > 1; DROP TABLE t"), HasSubstr("more than one"));
  EXPECT_THAT(refusal("CASE WHEN a THEN 1 END"), HasSubstr("'CASE'"));
  EXPECT_THAT(refusal("a = (SELECT 1)"), HasSubstr("'SELECT'"));
  EXPECT_THAT(refusal("a > 1 -- all"), HasSubstr("comment"));
  EXPECT_THAT(refusal("a = 'x"), AllOf(HasSubstr("no end"), HasSubstr("'")));
  EXPECT_THAT(refusal("a < b < 3"), HasSubstr("second comparison"));
  EXPECT_THAT(refusal(""), HasSubstr("condition is empty"));
  EXPECT_THAT(refusal("a >"), HasSubstr("the condition ends here"));
  EXPECT_THAT(refusal("a IN 3"), HasSubstr("( is expected"));
  EXPECT_THAT(refusal("(a > 1"), HasSubstr(") is expected"));
  EXPECT_THAT(refusal("a = ?"), HasSubstr("'?'"));
}

TEST_F(WhereTest, RefusesWhatCannotBeCompared) {
  EXPECT_THAT(refusal("aa > 1"), HasSubstr("did you mean 'a'"));
  EXPECT_THAT(refusal("s > 1"), HasSubstr("'quotation marks'"));
  EXPECT_THAT(refusal("a = 'x'"), HasSubstr("without quotation marks"));
  EXPECT_THAT(refusal("a LIKE 'x'"), HasSubstr("LIKE is about text"));
  EXPECT_THAT(refusal("s"), HasSubstr("not a condition by itself"));
  EXPECT_THAT(refusal("'x'"), HasSubstr("a text is not a condition"));
  EXPECT_THAT(refusal("(a > 1) = 1"), HasSubstr("a condition is compared"));
  EXPECT_THAT(refusal("tags = 1"), HasSubstr("cannot be compared"));
  EXPECT_EQ(refusal("tags IS NOT NULL"), "accepted");
}

TEST_F(WhereTest, BoundsItsOwnDepth) {
  std::string deep;
  for (int level = 0; level < 100'000; ++level) deep += "(";
  EXPECT_THAT(refusal(deep + "a"), HasSubstr("200 levels"));
  std::string nots;
  for (int level = 0; level < 100'000; ++level) nots += "NOT ";
  EXPECT_THAT(refusal(nots + "a"), HasSubstr("200 levels"));
  std::string wide = "a = 0";
  for (int part = 0; part < 20'000; ++part)
    wide += " OR a = " + std::to_string(part);
  EXPECT_EQ(here(wide), in_sqlite("a BETWEEN 0 AND 19999"));
}

TEST_F(WhereTest, SkipsChunksThatCannotMatch) {
  auto may = [&](const std::string& condition, long double min,
                 long double max) {
    return Where(condition, columns_)
        .may_select({ChunkBounds{.min = min, .max = max, .known = true}});
  };
  EXPECT_FALSE(may("a > 10", 0, 10));
  EXPECT_TRUE(may("a >= 10", 0, 10));
  EXPECT_FALSE(may("a = 11", 0, 10));
  EXPECT_FALSE(may("a IN (11, 12)", 0, 10));
  EXPECT_FALSE(may("a BETWEEN 11 AND 20", 0, 10));
  EXPECT_FALSE(may("a > 1 AND a < 0", 0, 10));
  EXPECT_TRUE(may("a < 0 OR a = 5", 0, 10));
  EXPECT_TRUE(may("NOT a < 100", 0, 10));
  EXPECT_TRUE(may("a IS NULL", 0, 10));
  EXPECT_TRUE(may("a NOT IN (5)", 0, 10));
  EXPECT_FALSE(may("a <> 5", 5, 5));
}

}  // namespace
}  // namespace penstock::files
