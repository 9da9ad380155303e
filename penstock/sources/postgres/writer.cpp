#include "penstock/sources/postgres/encode.h"
#include "penstock/sources/postgres/postgres.h"
#include "penstock/sources/postgres/table.h"

namespace penstock::postgres {
namespace {

/// Rows are sent when so many bytes have been collected.
constexpr std::size_t kSendBytes = 1 << 20;

std::string declared(const NewColumn& column) {
  if (!column.declared.empty()) return column.declared;
  if (column.type == ColumnType::json) return "json";
  switch (column.type.kind) {
    case ColumnKind::boolean:
      return "boolean";
    case ColumnKind::number:
      return column.type == ColumnType::int64 ? "bigint" : "double precision";
    case ColumnKind::uuid:
      return "uuid";
    default:
      return "text";
  }
}

std::string relation_word(char relkind) {
  switch (relkind) {
    case 'v':
    case 'm':
      return "view";
    case 'i':
    case 'I':
      return "index";
    case 'S':
      return "sequence";
    case 'f':
      return "foreign table";
    case 'c':
      return "type";
    default:
      return "table";
  }
}

/// Everything happens in one transaction: without COMMIT it leaves what was
/// there before.
class PostgresWriter : public TableWriter {
 public:
  PostgresWriter(const SourceSpec& spec, const std::vector<NewColumn>& columns,
                 bool replace);
  ~PostgresWriter() override;
  PostgresWriter(const PostgresWriter&) = delete;
  PostgresWriter& operator=(const PostgresWriter&) = delete;
  void write(const Block& block) override;
  void finish() override;

 private:
  void make_room(const SourceSpec& spec, bool replace);
  void choose_encodings(const SourceSpec& spec);
  void send();
  Result end_copy(const char* reason);
  void abandon_copy() noexcept;

  std::vector<NewColumn> columns_;
  Connection connection_;
  TableName name_;
  std::vector<Kind> kinds_;  // by column: what its values are sent as
  std::string pending_;
  std::int64_t rows_ = 0;
  bool copying_ = false;
};

PostgresWriter::PostgresWriter(const SourceSpec& spec,
                               const std::vector<NewColumn>& columns,
                               bool replace)
    : columns_(columns),
      connection_(without_delay(spec), Connection::Use::to_write),
      name_(spec.table) {
  std::string create = "CREATE TABLE " + name_.identifier() + " (";
  for (const NewColumn& column : columns) {
    create += (&column == columns.data() ? "" : ", ") +
              identifier(column.name) + " " + declared(column);
    if (column.primary_key) create += " PRIMARY KEY";
  }
  connection_.execute("BEGIN");
  make_room(spec, replace);
  connection_.execute(create + ")");
  choose_encodings(spec);
  connection_.execute("COPY " + name_.identifier() +
                      " FROM STDIN (FORMAT binary)");
  copying_ = true;
  append_copy_header(pending_);
}

void PostgresWriter::make_room(const SourceSpec& spec, bool replace) {
  Result found = connection_.ask(
      "SELECT c.relkind FROM pg_class c JOIN pg_namespace n ON "
      "n.oid = c.relnamespace WHERE c.relname = $1 AND n.nspname = "
      "coalesce(nullif($2, ''), current_schema())",
      {name_.name, name_.schema});
  if (PQntuples(found.get()) == 0) return;
  std::string word = relation_word(text_in(found, 0, 0)[0]);
  if (word != "table")
    refuse_table(spec, connection_.place(), "source.table_exists",
                 "the name is used by another object (" + word + ")",
                 "choose another name");
  if (!replace)
    refuse_table(spec, connection_.place(), "source.table_exists",
                 "the table exists",
                 "choose another name, or replace the table (--replace)");
  connection_.execute("DROP TABLE " + name_.identifier());
}

void PostgresWriter::choose_encodings(const SourceSpec& spec) {
  SourceSpec made = spec;
  Table table = find_table(connection_, made);
  kinds_ = table.kinds;
  for (std::size_t at = 0; at < columns_.size(); ++at)
    if (!can_encode(columns_[at].type, kinds_[at]))
      refuse_table(
          spec, connection_.place(), "postgres.type",
          "column '" + columns_[at].name + "' holds " +
              std::string(name_of(columns_[at].type)) +
              ", which cannot be written as " +
              table.schema.columns[at].declared,
          "declare it as " + declared({.name = "", .type = columns_[at].type}));
}

PostgresWriter::~PostgresWriter() {
  if (copying_) abandon_copy();
  if (connection_.alive()) connection_.clean_up("ROLLBACK");
}

void PostgresWriter::write(const Block& block) {
  PENSTOCK_ASSERT(copying_, "the table is not finished");
  check_block(block, columns_);
  for (std::int64_t row = 0; row < block.rows; ++row, ++rows_) {
    append_row_head(pending_, columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (!encode(block.columns[c], row, kinds_[c], pending_))
        throw Error(ErrorKind::request,
                    {.code = "postgres.value",
                     .what = "cannot write row " + std::to_string(rows_ + 1),
                     .where = connection_.place() + ", column '" +
                              columns_[c].name + "'",
                     .why = "the value does not fit the column's type, " +
                            declared(columns_[c]),
                     .next = "declare the column with a wider type, or write "
                             "another value"});
    if (pending_.size() >= kSendBytes) send();
  }
}

void PostgresWriter::send() {
  int sent = connection_.put_copy(pending_);
  pending_.clear();
  if (sent == 1) return;
  copying_ = false;
  Result result = end_copy(nullptr);
  throw connection_.error(connection_.alive() ? result.get() : nullptr);
}

/// The result of the COPY; a reason makes it fail.
Result PostgresWriter::end_copy(const char* reason) {
  PQputCopyEnd(connection_.get(), reason);
  Result first;
  while (Result result = connection_.next_result()) {
    bool stuck = PQresultStatus(result.get()) == PGRES_COPY_IN;
    if (first == nullptr) first = std::move(result);
    if (stuck) break;
  }
  return first;
}

void PostgresWriter::abandon_copy() noexcept try {
  end_copy("the table was not finished");
} catch (const std::exception&) {  // the server is gone, and the copy with it
}

void PostgresWriter::finish() {
  PENSTOCK_ASSERT(copying_, "a table is finished once");
  append_copy_trailer(pending_);
  send();
  copying_ = false;
  Result result = end_copy(nullptr);
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK)
    throw connection_.error(result.get());
  connection_.execute("COMMIT");
}

}  // namespace

std::unique_ptr<TableWriter> make_table(const SourceSpec& spec,
                                        const std::vector<NewColumn>& columns,
                                        bool replace) {
  if (spec.table.empty())
    refuse_table(
        spec, "source.uri", "source.no_table", "the URI names no table",
        "write the table after the URI: postgresql://host/database#table");
  PENSTOCK_ASSERT(!columns.empty(), "a table has at least one column");
  return std::make_unique<PostgresWriter>(spec, columns, replace);
}

}  // namespace penstock::postgres
