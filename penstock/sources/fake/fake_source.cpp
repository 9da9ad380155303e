#include "penstock/sources/fake/fake_source.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "penstock/base/error.h"
#include "penstock/sources/schema.h"

namespace penstock {
namespace {

// A library with one lock for everything, as HDF5 has.
Mutex global_mutex;

std::string padded(std::int64_t number, std::size_t digits) {
  std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

ColumnType type_of(const FakeTable& table, std::size_t column, ReadAs as) {
  if (std::optional<ColumnType> given = type_given_by(as)) return *given;
  if (as == ReadAs::key) return table.key;
  const std::string& declared = table.schema.columns[column].declared;
  if (declared == "int64") return ColumnType::int64;
  if (declared == "float64") return ColumnType::float64;
  return ColumnType::text;
}

std::string shown(const FakeCell& cell) {
  if (auto* text = std::get_if<std::string>(&cell))
    return "text '" + *text + "'";
  if (auto* integer = std::get_if<std::int64_t>(&cell))
    return std::to_string(*integer);
  if (auto* number = std::get_if<double>(&cell)) return std::to_string(*number);
  return "NULL";
}

/// Adds the cell to a column of its type; false when it does not fit there.
bool append(const FakeCell& cell, Column& to) {
  auto* text = std::get_if<std::string>(&cell);
  auto* integer = std::get_if<std::int64_t>(&cell);
  auto* number = std::get_if<double>(&cell);
  if (std::holds_alternative<std::nullptr_t>(cell)) {
    to.append_null();
    return true;
  }
  switch (to.type.kind) {
    case ColumnKind::number:
      if (to.type == ColumnType::int64) {
        if (text != nullptr) return false;
        if (number != nullptr &&
            (*number != std::floor(*number) || std::abs(*number) >= 0x1p63))
          return false;
        to.append_int64(integer ? *integer
                                : static_cast<std::int64_t>(*number));
        return true;
      }
      if (text != nullptr || (number != nullptr && !std::isfinite(*number)))
        return false;
      to.append_float64(number ? *number : static_cast<double>(*integer));
      return true;
    case ColumnKind::uuid:
      if (text == nullptr || text->size() != 16) return false;
      to.append_uuid(reinterpret_cast<const std::byte*>(text->data()));
      return true;
    default:
      if (text == nullptr) return false;
      to.append_text(*text);
      return true;
  }
}

void append_key(const FakeCell& cell, KeyList& keys) {
  if (keys.type() == ColumnType::int64)
    keys.append_integer(std::get<std::int64_t>(cell));
  else
    keys.append_bytes(std::get<std::string>(cell));
}

/// What a row takes in a block, at most.
std::size_t bytes_of(const std::vector<FakeCell>& row) {
  std::size_t bytes = 0;
  for (const FakeCell& cell : row) {
    bytes += 18;
    if (auto* text = std::get_if<std::string>(&cell)) bytes += text->size();
  }
  return bytes;
}

struct Snapshot {
  std::shared_ptr<const FakeTable> table;
  std::shared_ptr<FakeSource::Shared> shared;
  int parts;

  Snapshot(std::shared_ptr<FakeSource::Shared> source, int parts_of_pass)
      : table(source->now()), shared(std::move(source)), parts(parts_of_pass) {
    ++shared->counts.snapshots_open;
  }
  ~Snapshot() { --shared->counts.snapshots_open; }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  std::size_t start_of(std::int64_t part) const {
    return table->rows.size() * static_cast<std::size_t>(part) /
           static_cast<std::size_t>(parts);
  }
};

class FakeReader : public Reader {
 public:
  explicit FakeReader(std::shared_ptr<FakeSource::Shared> shared)
      : shared_(std::move(shared)) {
    ++shared_->counts.readers_open;
  }
  ~FakeReader() override { --shared_->counts.readers_open; }

  void scan(const Partition& partition, BlockLimit limit,
            const BlockSink& sink) override {
    auto& snapshot = *static_cast<Snapshot*>(partition.snapshot.get());
    std::size_t at = snapshot.start_of(partition.index);
    std::size_t end = snapshot.start_of(partition.index + 1);
    KeyList keys;
    Block block;
    while (at < end) {
      if (++shared_->counts.blocks == shared_->trouble.fail_at_block)
        fail("block " + std::to_string(shared_->trouble.fail_at_block));
      std::size_t first = at;
      std::size_t stop =
          std::min(end, at + static_cast<std::size_t>(limit.rows));
      fill(block, [&] {
        for (std::size_t bytes = 0; at < stop; ++at) {
          bytes += bytes_of(snapshot.table->rows[at]);
          if (at > first && bytes > limit.bytes) break;
          append_row(snapshot.table->rows[at], block);
        }
      });
      keys = KeyList(snapshot.table->key);
      for (std::size_t row = first; row < at; ++row)
        append_key(snapshot.table->rows[row][0], keys);
      if (!sink(keys, block)) return;
    }
  }

  void read(const ReadRequest& request, Block& out) override {
    const std::int64_t number = ++shared_->counts.reads;
    if (shared_->trouble.reads_fail || number == shared_->trouble.fail_at_read)
      fail("read " + std::to_string(number));
    PENSTOCK_ASSERT(request.keys != nullptr, "a fake table is read by keys");
    std::shared_ptr<const FakeTable> table = shared_->now();
    index(table);
    fill(out, [&] {
      for (std::int64_t at = 0; at < request.rows(); ++at) {
        auto found = rows_by_key_.find(request.keys->canonical(at));
        if (found != rows_by_key_.end()) {
          append_row(table->rows[found->second], out);
          continue;
        }
        if (request.gone == nullptr) gone(request.keys->shown(at));
        request.gone->push_back(at);
        for (Column& column : out.columns) column.append_null();
        ++out.rows;
      }
    });
  }

 private:
  template <class Fill>
  void fill(Block& block, Fill add_rows) {
    if (shared_->trouble.global_lock) {
      Lock lock(global_mutex);
      refill(block, add_rows);
    } else {
      refill(block, add_rows);
    }
  }

  template <class Fill>
  void refill(Block& block, Fill add_rows) {
    double seconds = shared_->trouble.seconds_per_call;
    if (seconds > 0) {
      Clock& clock = *shared_->trouble.clock;
      clock.sleep_until(clock.now() + from_seconds(seconds));
    }
    block = Block();
    for (ColumnType type : shared_->types)
      block.columns.emplace_back().type = type;
    add_rows();
    shared_->counts.rows += block.rows;
  }

  void append_row(const std::vector<FakeCell>& row, Block& block) const {
    for (std::size_t c = 0; c < block.columns.size(); ++c) {
      const FakeCell& cell = row[shared_->columns[c]];
      if (append(cell, block.columns[c])) continue;
      block.problems.push_back(
          {block.rows, c,
           "holds " + shown(cell) + " where a " +
               std::string(name_of(block.columns[c].type)) + " is expected"});
      block.columns[c].append_null();
    }
    ++block.rows;
  }

  void index(const std::shared_ptr<const FakeTable>& table) {
    if (indexed_ == table) return;
    rows_by_key_.clear();
    KeyList keys(table->key);
    for (std::size_t at = 0; at < table->rows.size(); ++at) {
      append_key(table->rows[at][0], keys);
      rows_by_key_[keys.canonical(static_cast<std::int64_t>(at))] = at;
    }
    indexed_ = table;
  }

  [[noreturn]] void fail(std::string what) const {
    throw Error(ErrorKind::source, {.code = "fake.failed",
                                    .what = "cannot read a fake table",
                                    .where = std::move(what),
                                    .why = "it was set to fail there"});
  }

  [[noreturn]] void gone(const std::string& key) const {
    throw Error(ErrorKind::source,
                {.code = "source.row_gone",
                 .what = "cannot read the row with key " + key,
                 .where = "a fake table",
                 .why = "it is gone",
                 .next = "start the run again"});
  }

  std::shared_ptr<FakeSource::Shared> shared_;
  std::shared_ptr<const FakeTable> indexed_;
  std::map<std::string, std::size_t> rows_by_key_;
};

std::size_t column_at(const Schema& schema, const ColumnRequest& request) {
  const ColumnInfo* column = schema.find(request.column);
  PENSTOCK_ASSERT(column != nullptr, "a fake table has the columns");
  return static_cast<std::size_t>(column - schema.columns.data());
}

SourceFacts facts_of(const FakeTable& table,
                     const std::vector<ColumnRequest>& requests) {
  SourceFacts facts{.shown = "a fake table",
                    .schema = table.schema,
                    .abilities = {.by_key = true},
                    .key = table.key};
  for (const ColumnRequest& request : requests)
    facts.types.push_back(
        type_of(table, column_at(table.schema, request), request.as));
  facts.identity["kind"] = "fake";
  facts.identity["rows"] = std::ssize(table.rows);
  if (!table.version.empty()) facts.identity["version"] = table.version;
  return facts;
}

}  // namespace

FakeCell counting_key(ColumnType key, std::int64_t i) {
  if (key == ColumnType::int64) return 10 * i;
  if (key == ColumnType::text) return "row-" + padded(i, 5);
  std::string uuid(16, '\0');
  for (std::size_t byte = 0; byte < 8; ++byte)
    uuid[15 - byte] = static_cast<char>(i >> (8 * byte) & 0xff);
  return uuid;
}

FakeTable counting_table(const CountingOptions& options) {
  FakeTable table;
  table.key = options.key;
  table.schema.columns = {{.name = "id",
                           .declared = std::string(name_of(options.key)),
                           .primary_key = true},
                          {.name = "value", .declared = "float64"},
                          {.name = "group", .declared = "text"},
                          {.name = "items", .declared = "json"}};
  // A stride that shares no factor with the rows visits each of them once.
  std::int64_t stride = 1;
  if (options.scrambled)
    for (stride = options.rows * 5 / 8 + 1;
         std::gcd(stride, options.rows) != 1;)
      ++stride;
  for (std::int64_t n = 0, i = 0; n < options.rows;
       ++n, i = (i + stride) % options.rows) {
    std::string items;
    for (std::int64_t j = 0; j <= i % 5; ++j)
      items += (items.empty() ? "[" : ",") + std::string("{\"a\":") +
               std::to_string(i) + ",\"b\":" + std::to_string(j) + "}";
    FakeCell value = static_cast<double>(i);
    if (i == options.bad_row) value = std::string("bad");
    table.rows.push_back({counting_key(options.key, i), std::move(value),
                          "group-" + std::to_string(i / 7), items + "]"});
  }
  return table;
}

std::shared_ptr<const FakeTable> FakeSource::Shared::now() {
  Lock lock(mutex);
  return table;
}

FakeSource::FakeSource(FakeTable table,
                       const std::vector<ColumnRequest>& requests,
                       FakeTrouble trouble)
    : Source(facts_of(table, requests)), shared_(std::make_shared<Shared>()) {
  if (trouble.clock == nullptr) trouble.clock = &wall_clock();
  shared_->trouble = trouble;
  for (const ColumnRequest& request : requests)
    shared_->columns.push_back(column_at(schema(), request));
  shared_->types = types();
  Lock lock(shared_->mutex);
  shared_->table = std::make_shared<const FakeTable>(std::move(table));
}

RowCount FakeSource::count() const {
  return {.rows = std::ssize(shared_->now()->rows), .exact = true};
}

std::vector<Partition> FakeSource::partitions(int readers) {
  int parts = std::clamp(readers, 1, shared_->trouble.most_partitions);
  auto snapshot = std::make_shared<Snapshot>(shared_, parts);
  std::vector<Partition> partitions;
  for (int part = 0; part < parts; ++part)
    partitions.push_back({"rows " + std::to_string(snapshot->start_of(part)) +
                              ".." +
                              std::to_string(snapshot->start_of(part + 1)),
                          part, snapshot});
  return partitions;
}

std::unique_ptr<Reader> FakeSource::open_reader() {
  return std::make_unique<FakeReader>(shared_);
}

template <class Change>
void FakeSource::change(Change change) {
  Lock lock(shared_->mutex);
  FakeTable changed = *shared_->table;
  change(changed.rows);
  shared_->table = std::make_shared<const FakeTable>(std::move(changed));
}

void FakeSource::add_row(std::vector<FakeCell> row) {
  change([&](auto& rows) { rows.push_back(std::move(row)); });
}

void FakeSource::change_row(std::int64_t at, std::vector<FakeCell> row) {
  change([&](auto& rows) { rows[static_cast<std::size_t>(at)] = row; });
}

void FakeSource::remove_row(std::int64_t at) {
  change([&](auto& rows) { rows.erase(rows.begin() + at); });
}

}  // namespace penstock
