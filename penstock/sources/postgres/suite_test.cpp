#include "penstock/sources/postgres/test_server.h"
#include "tests/conformance/database_suite.h"
#include "tests/conformance/source_abilities_suite.h"

namespace penstock {
namespace {

class PostgresFixture : public SourceFixture {
 public:
  void fill(ColumnType key, const std::vector<SuiteRow>& rows) override {
    key_ = key;
    schema_.execute("CREATE TABLE t(id " + std::string(key_word()) +
                    " PRIMARY KEY, number float8, whole bigint, doc json)");
    schema_.execute("BEGIN");
    for (const SuiteRow& row : rows) add(row);
    schema_.execute("COMMIT");
  }
  std::unique_ptr<Source> open(
      const std::vector<ColumnRequest>& wanted) override {
    return open_source(schema_.spec(), wanted);
  }
  void add(const SuiteRow& row) override {
    std::string key = std::to_string(row.id);
    if (key_ == ColumnType::text) key = row.key;
    if (key_ == ColumnType::uuid) key = hex(row.key);
    std::string number =
        row.number ? std::to_string(*row.number) : std::string();
    std::string whole = row.whole ? std::to_string(*row.whole) : std::string();
    const char* values[] = {key.c_str(), row.number ? number.c_str() : nullptr,
                            row.whole ? whole.c_str() : nullptr,
                            row.doc ? row.doc->c_str() : nullptr};
    PGresult* result = PQexecParams(schema_.session().get(),
                                    "INSERT INTO t VALUES "
                                    "($1, $2, $3, $4)",
                                    4, nullptr, values, nullptr, nullptr, 0);
    EXPECT_EQ(PQresultStatus(result), PGRES_COMMAND_OK)
        << PQresultErrorMessage(result);
    PQclear(result);
  }

 private:
  const char* key_word() const {
    return key_ == ColumnType::int64  ? "integer"
           : key_ == ColumnType::text ? "varchar(100)"
                                      : "uuid";
  }
  static std::string hex(const std::string& bytes) {
    std::string text;
    for (char c : bytes) {
      auto byte = static_cast<unsigned char>(c);
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
    return text;
  }

  TestSchema schema_;
  ColumnType key_ = ColumnType::int64;
};

std::unique_ptr<SourceFixture> make_postgres() {
  return std::make_unique<PostgresFixture>();
}

INSTANTIATE_TEST_SUITE_P(
    Postgres, SourceSuite,
    testing::Values(SourceCase{"int64", ColumnType::int64, make_postgres},
                    SourceCase{"text", ColumnType::text, make_postgres},
                    SourceCase{"uuid", ColumnType::uuid, make_postgres}),
    testing::PrintToStringParamName());

INSTANTIATE_TYPED_TEST_SUITE_P(Postgres, DatabaseSuite, TestSchema);

}  // namespace
}  // namespace penstock
