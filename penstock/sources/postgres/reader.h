#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/sources/key_lookup.h"
#include "penstock/sources/postgres/copy.h"
#include "penstock/sources/postgres/snapshot.h"

namespace penstock::postgres {

/// Scans on the snapshot's connection while it is free, and on its own
/// otherwise; reads by keys on its own. It opens that one when it is first
/// needed and keeps it for all partitions and reads, outside of any
/// transaction.
class PostgresReader : public Reader {
 public:
  explicit PostgresReader(std::shared_ptr<OpenTable> opened)
      : opened_(std::move(opened)) {}

  void scan(const Partition& partition, BlockLimit limit,
            const BlockSink& sink) override;
  void read(const ReadRequest& request, Block& out) override;

 private:
  Connection& connection();
  void copy(CopyOut& copy, const Partition& partition, BlockLimit limit,
            const BlockSink& sink);
  Result rows_with(const std::vector<std::string>& keys);
  void fetch(const KeyList& keys);
  void place_rows(const KeyList& keys);
  void take_fields(int row);
  Error row_error(const KeyList& keys, std::int64_t at, std::string code,
                  std::string why, std::string next) const;

  std::shared_ptr<OpenTable> opened_;
  std::optional<Connection> connection_;
  bool prepared_ = false;  // the statement that reads by keys

  // Of the read that goes on.
  KeyLookup asked_;
  Result result_;            // rows in any order
  std::vector<int> row_of_;  // by group of keys: its row in the result, or -1
  std::vector<Field> fields_;
};

}  // namespace penstock::postgres
