#include <libpq-fe.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "bench/drain.h"
#include "penstock/base/base.h"

namespace penstock {
namespace {

struct CloseConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using Connection = std::unique_ptr<PGconn, CloseConnection>;
struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, ClearResult>;

Connection connect(const std::string& uri) {
  Connection connection(PQconnectdb(uri.c_str()));
  PENSTOCK_ASSERT(PQstatus(connection.get()) == CONNECTION_OK,
                  "the server lets us in");
  return connection;
}

std::int64_t pages_of(const std::string& uri, const std::string& table) {
  Connection connection = connect(uri);
  std::string sql = "SELECT pg_relation_size('" + table +
                    "') / current_setting('block_size')::int";
  Result result(PQexec(connection.get(), sql.c_str()));
  PENSTOCK_ASSERT(PQresultStatus(result.get()) == PGRES_TUPLES_OK,
                  "the table is there");
  return std::atoll(PQgetvalue(result.get(), 0, 0));
}

Drained drain_pages(const std::string& uri, const std::string& table,
                    std::int64_t first, std::int64_t end) {
  Connection connection = connect(uri);
  std::string sql = "COPY (SELECT id, receivers, tx_lat, tx_lon FROM " + table +
                    " WHERE ctid >= '(" + std::to_string(first) +
                    ",0)' AND ctid < '(" + std::to_string(end) +
                    ",0)') TO STDOUT (FORMAT binary)";
  Result started(PQexec(connection.get(), sql.c_str()));
  PENSTOCK_ASSERT(PQresultStatus(started.get()) == PGRES_COPY_OUT,
                  "the copy begins");
  Drained drained;
  char* row = nullptr;
  for (int size; (size = PQgetCopyData(connection.get(), &row, 0)) > 0;) {
    ++drained.rows;
    drained.bytes += size;
    PQfreemem(row);
  }
  --drained.rows;  // the trailer; the header comes with the first row
  return drained;
}

}  // namespace

std::optional<Drained> drain_postgres(const std::string& uri,
                                      const std::string& table,
                                      int connections) {
  std::int64_t pages = pages_of(uri, table);
  std::vector<Drained> parts(static_cast<std::size_t>(connections));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < connections; ++i)
      threads.emplace_back([&, i] {
        parts[static_cast<std::size_t>(i)] = drain_pages(
            uri, table, i * pages / connections, (i + 1) * pages / connections);
      });
  }
  Drained all;
  for (const Drained& part : parts) {
    all.rows += part.rows;
    all.bytes += part.bytes;
  }
  return all;
}

}  // namespace penstock
