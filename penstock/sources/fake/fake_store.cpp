#include "penstock/sources/fake/fake_store.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "penstock/base/error.h"

namespace penstock {

struct FakeStore::Shared {
  Block rows;
  std::vector<std::size_t> columns;  // by request
  FakeStoreTrouble trouble;
  std::shared_ptr<const ChunkMap> chunks;  // null: rows are read one by one
  FakeStoreCounts counts;
  std::atomic<int> inside{0};
};

namespace {

SourceFacts facts_of(const std::vector<std::string>& names, const Block& rows,
                     const std::vector<ColumnRequest>& requests,
                     const FakeStoreTrouble& trouble) {
  SourceFacts facts{.shown = "a fake store",
                    .abilities = {.by_position = true,
                                  .sorted = true,
                                  .global_lock = trouble.global_lock}};
  for (std::size_t c = 0; c < names.size(); ++c)
    facts.schema.columns.push_back(
        {.name = names[c],
         .declared = std::string(name_of(rows.columns[c].type))});
  for (const ColumnRequest& request : requests) {
    const ColumnInfo* column = facts.schema.find(request.column);
    PENSTOCK_ASSERT(column != nullptr, "a fake store has the columns");
    auto at = static_cast<std::size_t>(column - facts.schema.columns.data());
    facts.types.push_back(rows.columns[at].type);
  }
  facts.identity["kind"] = "fake store";
  facts.identity["rows"] = rows.rows;
  return facts;
}

bool varies(const Column& column) {
  return column.type.is_text() || column.type.kind == ColumnKind::binary ||
         column.type.kind == ColumnKind::list;
}

[[noreturn]] void fail(std::string why) {
  throw Error(ErrorKind::source, {.code = "fake.failed",
                                  .what = "cannot read a fake store",
                                  .where = "a fake store",
                                  .why = std::move(why)});
}

/// Fails for the second one that is inside at a time.
class Visit {
 public:
  explicit Visit(std::atomic<int>& inside) : inside_(inside) {
    if (++inside_ == 1) return;
    --inside_;
    fail("two readers are inside the global lock");
  }
  ~Visit() { --inside_; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  std::atomic<int>& inside_;
};

class FakeStoreReader final : public Reader {
 public:
  explicit FakeStoreReader(std::shared_ptr<FakeStore::Shared> shared)
      : shared_(std::move(shared)) {
    ++shared_->counts.readers_open;
  }
  ~FakeStoreReader() override { --shared_->counts.readers_open; }

  void read(const ReadRequest& request, Block& out) override {
    FakeStore::Shared& s = *shared_;
    PENSTOCK_ASSERT(request.keys == nullptr, "a store has no keys");
    std::optional<Visit> visit;
    if (s.trouble.global_lock) visit.emplace(s.inside);
    if (++s.counts.reads == s.trouble.fail_at_read)
      fail("it was set to fail at read " +
           std::to_string(s.trouble.fail_at_read));
    if (s.trouble.reading) s.trouble.reading();
    visit_chunks(request.positions);
    out = Block();
    for (std::size_t at : s.columns)
      out.columns.emplace_back().type = s.rows.columns[at].type;
    for (std::int64_t row : request.positions) {
      for (std::size_t c = 0; c < s.columns.size(); ++c)
        out.columns[c].append_from(s.rows.columns[s.columns[c]], row);
      ++out.rows;
    }
    s.counts.rows += out.rows;
    if (s.trouble.spoil) s.trouble.spoil(out);
  }

 private:
  /// In ascending order, so that a chunk is read once.
  void visit_chunks(std::span<const std::int64_t> positions) {
    FakeStore::Shared& s = *shared_;
    std::vector<std::int64_t> order(positions.begin(), positions.end());
    std::ranges::sort(order);
    for (std::int64_t row : order) {
      if (row < 0 || row >= s.rows.rows)
        throw Error(ErrorKind::source,
                    {.code = "source.row_gone",
                     .what = "cannot read position " + std::to_string(row),
                     .where = "a fake store",
                     .why = "it has " + std::to_string(s.rows.rows) + " rows"});
      if (s.chunks == nullptr) continue;
      std::int64_t chunk = s.chunks->chunk_of(row);
      if (chunk == std::exchange(chunk_, chunk)) continue;
      ++s.counts.chunk_reads;
    }
  }

  std::shared_ptr<FakeStore::Shared> shared_;
  std::int64_t chunk_ = -1;
};

}  // namespace

FakeStore::FakeStore(std::vector<std::string> names, Block rows,
                     const std::vector<ColumnRequest>& requests,
                     FakeStoreTrouble trouble)
    : Source(facts_of(names, rows, requests, trouble)),
      shared_(std::make_shared<Shared>()) {
  for (const ColumnRequest& request : requests)
    shared_->columns.push_back(static_cast<std::size_t>(
        schema().find(request.column) - schema().columns.data()));
  if (trouble.chunk_rows > 0 && rows.rows > 0) {
    auto chunks = std::make_shared<ChunkMap>();
    for (std::int64_t end = 0; end < rows.rows;)
      chunks->ends.push_back(end =
                                 std::min(rows.rows, end + trouble.chunk_rows));
    chunks->reader = trouble.reader;
    shared_->chunks = facts_.chunks = std::move(chunks);
  }
  shared_->rows = std::move(rows);
  shared_->trouble = std::move(trouble);
}

RowCount FakeStore::count() const {
  return {.rows = shared_->rows.rows, .exact = true};
}

bool FakeStore::lengths(std::size_t request, std::int64_t first,
                        std::span<std::int32_t> out) const {
  const Column& column = shared_->rows.columns[shared_->columns[request]];
  if (!shared_->trouble.tells_lengths || !varies(column)) return false;
  for (std::int32_t& length : out) {
    length = static_cast<std::int32_t>(column.offset(first + 1) -
                                       column.offset(first));
    ++first;
  }
  return true;
}

std::unique_ptr<Reader> FakeStore::open_reader() {
  if (shared_->trouble.opening) shared_->trouble.opening();
  return std::make_unique<FakeStoreReader>(shared_);
}

const FakeStoreCounts& FakeStore::counts() const { return shared_->counts; }

std::unique_ptr<FakeStore> counting_store(
    std::int64_t rows, const std::vector<ColumnRequest>& requests,
    FakeStoreTrouble trouble) {
  Block block;
  block.rows = rows;
  Column value{.type = ColumnType::float64};
  Column samples{.type = ColumnType::list};
  Column packed{.type = ColumnType::binary};
  samples.children.push_back({.type = ColumnType::number(Dtype::float32)});
  for (std::int64_t i = 0; i < rows; ++i) {
    value.append_float64(static_cast<double>(i));
    for (std::int64_t j = 0; j <= i % 5; ++j)
      samples.children[0].append_number(static_cast<float>(i + j));
    samples.append_list();
    packed.append_text(std::string(static_cast<std::size_t>(i % 7), 'x'));
  }
  block.columns.push_back(std::move(value));
  block.columns.push_back(std::move(samples));
  block.columns.push_back(std::move(packed));
  return std::make_unique<FakeStore>(
      std::vector<std::string>{"value", "samples", "packed"}, std::move(block),
      requests, std::move(trouble));
}

}  // namespace penstock
