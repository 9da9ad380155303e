#include "penstock/sources/query_text.h"

#include <gmock/gmock.h>

#include "penstock/sources/test_reading.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr SqlQuotes kSqlite{.brackets = true}, kPostgres{.dollars = true};

std::vector<std::string> order_in(const std::string& sql,
                                  SqlQuotes quotes = kPostgres) {
  std::vector<std::string> shown;
  for (const OrderTerm& term : QueryText(sql, quotes).order())
    shown.push_back(!term.simple ? "expression " + term.written
                    : term.column.empty()
                        ? std::to_string(term.number) + term.how
                        : term.column + term.how);
  return shown;
}

std::string statement_of(const std::string& sql, SqlQuotes quotes = kPostgres) {
  return QueryText(sql, quotes).statement();
}

TEST(QueryText, EndsWithItsLastWord) {
  EXPECT_EQ(statement_of("SELECT 1 ; -- all\n /* of it */ ;\n"), "SELECT 1");
  EXPECT_EQ(statement_of(" SELECT ';' "), " SELECT ';'");
  EXPECT_EQ(statement_of("SELECT 1; SELECT 2;"), "SELECT 1; SELECT 2");
  EXPECT_EQ(statement_of(" -- nothing"), "");
  EXPECT_EQ(statement_of(""), "");
  EXPECT_EQ(statement_of("SELECT 1 /* /* */ ; */", kPostgres), "SELECT 1");
  EXPECT_EQ(statement_of("SELECT 1 /* /* */ ; ", kSqlite), "SELECT 1");
  EXPECT_EQ(statement_of("SELECT $$ ; $$;"), "SELECT $$ ; $$");
  EXPECT_EQ(statement_of("SELECT $a$ ; $$ ; $a$ ;"), "SELECT $a$ ; $$ ; $a$");
  EXPECT_EQ(statement_of(R"(SELECT E'\' ; ' ;)"), R"(SELECT E'\' ; ')");
  EXPECT_EQ(statement_of(R"(SELECT '\' ; )"), R"(SELECT '\')");
}

TEST(QueryText, KnowsWhatItIsOrderedBy) {
  EXPECT_THAT(order_in("SELECT * FROM t ORDER BY a"), ElementsAre("a"));
  EXPECT_THAT(order_in("select * from t order by a desc , \"b \"\"c\" NULLS "
                       "first, 3 LIMIT 5 OFFSET 2"),
              ElementsAre("a desc", "b \"c NULLS first", "3"));
  EXPECT_THAT(order_in("WITH x AS (SELECT 1 ORDER BY z) TABLE x ORDER -- so\n "
                       "BY y FETCH FIRST ROW ONLY"),
              ElementsAre("y"));
  EXPECT_THAT(order_in("SELECT a FROM t UNION SELECT b FROM u ORDER BY 1;"),
              ElementsAre("1"));
  EXPECT_THAT(
      order_in("SELECT a FROM t ORDER BY [a b], `c` COLLATE NOCASE", kSqlite),
      ElementsAre("a b", "c COLLATE NOCASE"));
}

TEST(QueryText, HasNoOrderWhereOnlyAPartOfItIsOrdered) {
  for (const char* sql :
       {"SELECT * FROM t", "SELECT * FROM (SELECT * FROM t ORDER BY a) q",
        "SELECT row_number() OVER (ORDER BY a) FROM t",
        "SELECT 'ORDER BY a', \"ORDER BY b\" FROM t -- ORDER BY c",
        "SELECT $$ ORDER BY a $$ FROM t", "(SELECT * FROM t ORDER BY a)",
        "SELECT a AS border, by FROM t"})
    EXPECT_THAT(order_in(sql), IsEmpty()) << sql;
}

TEST(QueryText, TellsColumnsOfTheResultFromExpressions) {
  EXPECT_THAT(
      order_in("SELECT * FROM t ORDER BY t.a, lower(b), -c, 'd', a + 1"),
      ElementsAre("expression t.a", "expression lower(b)", "expression -c",
                  "expression 'd'", "expression a + 1"));
}

TEST(QueryText, FindsTheWordThatWrites) {
  auto word = [](const char* sql) {
    return QueryText(sql, kPostgres).writing_word();
  };
  EXPECT_EQ(word("insert into t values (1) returning x"), "INSERT");
  EXPECT_EQ(word("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d"),
            "DELETE");
  EXPECT_EQ(word("WITH d AS (SELECT 1) UPDATE t SET x = 1"), "UPDATE");
  EXPECT_EQ(word("SELECT * INTO new FROM t"), "INTO");
  EXPECT_EQ(word("SELECT (replace(a, 'b', 'c')), 'INSERT', \"delete\" FROM t"),
            "");
  EXPECT_EQ(word("SELECT * FROM t WHERE note = '(DELETE'"), "");
}

TEST(QueryText, TakesOneMoreColumn) {
  auto more = [](const std::string& query) {
    return QueryText(query, {}).with_column("rowid AS n");
  };
  EXPECT_EQ(more("SELECT a, (SELECT b FROM u), c IS DISTINCT FROM d\nFROM t"),
            "SELECT a, (SELECT b FROM u), c IS DISTINCT FROM d\n, rowid AS n "
            "FROM t");
  EXPECT_EQ(more("WITH w AS (SELECT 1 FROM t) SELECT * FROM w ORDER BY a;"),
            "WITH w AS (SELECT 1 FROM t) SELECT * , rowid AS n FROM w ORDER BY "
            "a");
  for (const char* query :
       {"SELECT DISTINCT a FROM t", "SELECT a FROM t UNION SELECT b FROM u",
        "SELECT a, count(*) FROM t GROUP BY a", "SELECT 1", "VALUES (1)"})
    EXPECT_EQ(more(query), "") << query;
}

class RowOrder : public testing::Test {
 protected:
  std::string sql(const std::string& query, bool folds = true) {
    return order_of_rows(QueryText(query, kPostgres), schema_, folds,
                         "query in x");
  }
  Error refusal(const std::string& query) {
    return error_of([&] { sql(query); });
  }
  Schema schema_{.columns = {{.name = "id"}, {.name = "My \"x"}}};
};

TEST_F(RowOrder, IsThatOfColumnsOfTheResult) {
  EXPECT_EQ(sql("SELECT 1 ORDER BY ID DESC, 2, \"My \"\"x\" NULLS LAST"),
            R"("id" DESC, "My ""x", "My ""x" NULLS LAST)");
  EXPECT_EQ(sql("SELECT 1 ORDER BY iD", false), R"("id")");
}

TEST_F(RowOrder, IsRefusedWhereItIsNotSeenToBeFixed) {
  Error none = refusal("SELECT 1");
  EXPECT_EQ(none.kind(), ErrorKind::request);
  EXPECT_EQ(none.parts().code, "source.query_order");
  EXPECT_EQ(none.parts().where, "source.query");
  EXPECT_THAT(none.parts().next, HasSubstr("source.key"));
  EXPECT_THAT(none.parts().next, HasSubstr("SELECT a.id"));
  EXPECT_THAT(refusal("SELECT 1 ORDER BY lower(id)").what(),
              HasSubstr("'lower(id)', which is not the name of a column"));
  EXPECT_THAT(refusal("SELECT t.id FROM t JOIN u ORDER BY t.id").what(),
              HasSubstr("'t.id', which is not the name of a column of the "
                        "result: write ORDER BY id"));
  for (const char* order : {"idd", "\"ID\"", "3", "0"})
    EXPECT_THAT(refusal("SELECT 1 ORDER BY " + std::string(order)).what(),
                HasSubstr("its result has no such column"))
        << order;
}

}  // namespace
}  // namespace penstock
