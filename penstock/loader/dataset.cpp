#include "penstock/loader/dataset.h"

#include <algorithm>
#include <numeric>

namespace penstock {

std::vector<Wanted> wanted_of(const DatasetOptions& options) {
  std::vector<Wanted> wanted;
  for (const NeededColumn& column : needed_columns(options.fields))
    wanted.push_back({column.name, column.json      ? ReadAs::json
                                   : column.integer ? ReadAs::integer
                                                    : ReadAs::number});
  if (!options.split.by.empty())
    wanted.push_back({options.split.by, ReadAs::value});
  return wanted;
}

namespace {

constexpr std::int64_t kBlockRows = 1024;  // of 1 KB rows: stays in the cache

/// A raw row by where it arrived.
struct RowRef {
  std::uint32_t block;
  std::uint32_t row;
};

Preparer make_preparer(const DatasetOptions& options) {
  return Preparer({.fields = options.fields,
                   .by_column = !options.split.by.empty(),
                   .mark = [split = options.split](std::string_view by) {
                     return static_cast<std::uint8_t>(side_of(split, by));
                   }});
}

/// A timestamp in seconds needs more than float32's 24 bits.
void check_timestamps(const std::vector<Field>& fields, const Schema& schema) {
  for (const Field& field : fields) {
    const Columns* rule = field.columns();
    if (rule == nullptr || field.standardize || rule->dtype != Dtype::float32)
      continue;
    for (const std::string& name : rule->columns) {
      const ColumnInfo* column = schema.find(name);
      if (column == nullptr || !column->timestamp) continue;
      throw Error(ErrorKind::request,
                  {.code = "fields.timestamp",
                   .what = "cannot use the settings",
                   .where = "fields." + field.name,
                   .why = "column '" + name +
                          "' is a timestamp, whose seconds do not fit float32",
                   .next = "add \"dtype\": \"float64\" or "
                           "\"standardize\": true"});
    }
  }
}

std::vector<std::vector<bool>> boolean_columns(const std::vector<Field>& fields,
                                               const Schema& schema) {
  std::vector<std::vector<bool>> booleans(fields.size());
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const Columns* rule = fields[f].columns();
    if (rule == nullptr) continue;
    for (const std::string& name : rule->columns) {
      const ColumnInfo* column = schema.find(name);
      booleans[f].push_back(column != nullptr && column->boolean);
    }
  }
  return booleans;
}

[[noreturn]] void refuse_bad_rows(const std::vector<BadRow>& bad,
                                  const std::string& source) {
  std::string first;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, bad.size()); ++i) {
    const BadRow& row = bad[i];
    first += (i == 0 ? "" : "; ") + std::string("row ") + row.shown_key +
             ", column '" + row.column + "'";
    if (row.byte >= 0) first += ", byte " + std::to_string(row.byte);
    first += ": " + row.why;
  }
  throw Error(
      ErrorKind::transform,
      {.code = "data.bad_rows",
       .what = std::to_string(bad.size()) +
               (bad.size() == 1 ? " row is" : " rows are") + " not usable",
       .where = source,
       .why = first,
       .next = "mend them, leave them out with 'source.where', or set "
               "\"source.on_bad\": \"skip\" to leave out and list all such "
               "rows"});
}

}  // namespace

/// The pass while it runs: what arrives from the parsing threads.
struct Dataset::Pass {
  Mutex mutex;
  std::vector<RawBlock> blocks PENSTOCK_GUARDED_BY(mutex);
  Seen seen PENSTOCK_GUARDED_BY(mutex);

  void add(RawBlock block, Seen piece) {
    Lock lock(mutex);
    blocks.push_back(std::move(block));
    seen.merge(std::move(piece));
  }

  static void run(const Dataset& dataset, Pass& pass, StageMeter& read,
                  StageMeter& prepare, std::vector<Partition> partitions);
  static std::vector<RowRef> in_order(const std::vector<RawBlock>& blocks,
                                      const std::string& source);
};

namespace {

/// Tells `meter` the time of a scan apart from the time inside its sink.
class ScanTimer {
 public:
  explicit ScanTimer(StageMeter& meter) : meter_(meter) { start(); }
  void start() {
    wall_ = wall_clock().now();
    cpu_ = thread_cpu_time();
  }
  void stop() {
    meter_.add_busy(wall_clock().now() - wall_, thread_cpu_time() - cpu_);
  }

 private:
  StageMeter& meter_;
  Nanoseconds wall_{0}, cpu_{0};
};

void prepare_block(Preparer& preparer, const Block& block, StageMeter& meter,
                   RawBlock& rows, Seen& seen) {
  BusyScope busy(meter);
  rows = preparer.prepare(block, seen);
  meter.add_items(block.rows,
                  static_cast<std::int64_t>(rows.values.size() * 8));
}

}  // namespace

// Reading threads hand blocks to parsing threads; blocks that are used up go
// back, so that the steady state allocates nothing but the raw rows.
void Dataset::Pass::run(const Dataset& dataset, Pass& pass, StageMeter& read,
                        StageMeter& prepare,
                        std::vector<Partition> partitions) {
  int workers = dataset.options_.workers;
  auto consume = [&](Preparer& preparer, const Block& block) {
    RawBlock rows;
    Seen seen;
    prepare_block(preparer, block, prepare, rows, seen);
    pass.add(std::move(rows), std::move(seen));
  };
  if (workers == 0) {
    Preparer preparer = make_preparer(dataset.options_);
    for (const Partition& partition : partitions) {
      ScanTimer timer(read);
      dataset.source_->open_reader()->scan(
          partition, kBlockRows, [&](Block& block) {
            timer.stop();
            read.add_items(block.rows,
                           static_cast<std::int64_t>(block.bytes()));
            consume(preparer, block);
            timer.start();
            return true;
          });
      timer.stop();
    }
    return;
  }
  Queue<Block> filled(static_cast<std::size_t>(workers) + 1);
  Queue<Block> empty(static_cast<std::size_t>(workers) * 2 + partitions.size() +
                     2);
  auto fail = [&](std::exception_ptr error) {
    filled.fail(error);
    empty.close();
  };
  std::atomic<std::size_t> next_partition{0};  // each is taken once
  Stage parse({.name = "prepare",
               .workers = workers,
               .body =
                   [&](int) {
                     Preparer preparer = make_preparer(dataset.options_);
                     for (;;) {
                       Nanoseconds asked = wall_clock().now();
                       std::optional<Block> block = filled.pop();
                       prepare.add_blocked_get(wall_clock().now() - asked);
                       if (!block) return;
                       consume(preparer, *block);
                       block->clear();
                       if (empty.size() < static_cast<std::size_t>(workers) * 2)
                         empty.push(std::move(*block));
                     }
                   },
               .failed = fail});
  // The scan ends on this thread when there is one partition: no thread more.
  std::exception_ptr first_error;
  Mutex error_mutex;
  auto scan_all = [&](int) {
    std::unique_ptr<Reader> reader = dataset.source_->open_reader();
    for (std::size_t i;
         (i = next_partition.fetch_add(1)) < partitions.size();) {
      ScanTimer timer(read);
      reader->scan(partitions[i], kBlockRows, [&](Block& block) {
        timer.stop();
        read.add_items(block.rows, static_cast<std::int64_t>(block.bytes()));
        Nanoseconds asked = wall_clock().now();
        bool goes_on = filled.push(std::move(block));
        if (empty.size() > 0)
          if (std::optional<Block> back = empty.pop()) block = std::move(*back);
        read.add_blocked_put(wall_clock().now() - asked);
        timer.start();
        return goes_on;
      });
      timer.stop();
    }
  };
  auto scan_failed = [&](std::exception_ptr error) {
    fail(error);
    Lock lock(error_mutex);
    if (!first_error) first_error = error;
  };
  {
    int readers = static_cast<int>(partitions.size());
    Stage scan({.name = "read",
                .workers = readers == 1 ? 0 : readers,
                .body = scan_all,
                .failed = scan_failed,
                .last = [&] { filled.close(); }});
    if (readers == 1) scan.run_inline();
  }
  parse.join();
  if (first_error) std::rethrow_exception(first_error);
  filled.pop();  // throws what a parsing thread died of
}

std::vector<RowRef> Dataset::Pass::in_order(const std::vector<RawBlock>& blocks,
                                            const std::string& source) {
  std::int64_t rows = 0;
  ColumnType type = ColumnType::int64;
  for (const RawBlock& block : blocks) {
    rows += block.rows();
    if (block.rows() > 0) type = block.keys.type();
  }
  std::vector<RowRef> refs;
  refs.reserve(static_cast<std::size_t>(rows));
  for (std::uint32_t b = 0; b < blocks.size(); ++b)
    for (std::uint32_t r = 0; r < blocks[b].ends.size(); ++r)
      refs.push_back({b, r});
  auto less = [&](const RowRef& a, const RowRef& b) {
    const KeyList& x = blocks[a.block].keys;
    const KeyList& y = blocks[b.block].keys;
    if (type == ColumnType::int64) return x.integer(a.row) < y.integer(b.row);
    return x.bytes(a.row) < y.bytes(b.row);
  };
  if (!std::is_sorted(refs.begin(), refs.end(), less))
    std::sort(refs.begin(), refs.end(), less);
  for (std::size_t i = 1; i < refs.size(); ++i) {
    if (less(refs[i - 1], refs[i])) continue;
    throw Error(ErrorKind::source,
                {.code = "source.duplicate_key",
                 .what = "two rows have the key " +
                         blocks[refs[i].block].keys.shown(refs[i].row),
                 .where = source,
                 .why = "a sample's number is the rank of its key, so keys "
                        "must differ",
                 .next = "choose a unique column as 'source.key'"});
  }
  return refs;
}

Dataset::Dataset(DatasetOptions options) : options_(std::move(options)) {}
Dataset::~Dataset() = default;

std::shared_ptr<const Dataset> Dataset::prepare(const DatasetOptions& options,
                                                Device& device) {
  return prepare(options, open_source(options.source, wanted_of(options)),
                 device);
}

std::shared_ptr<const Dataset> Dataset::prepare(const DatasetOptions& options,
                                                std::unique_ptr<Source> opened,
                                                Device& device) {
  std::shared_ptr<Dataset> set(new Dataset(options));
  set->layout_ = layout_of(options.fields);
  set->source_ = std::move(opened);
  const std::string source = set->source_->shown();
  check_timestamps(options.fields, set->source_->schema());

  std::vector<Partition> partitions =
      set->source_->partitions(options.source.connections);
  StageMeter read("read", static_cast<int>(partitions.size()));
  StageMeter parse("prepare", std::max(1, options.workers));
  StageMeter pack("pack", 1);
  Pass pass;
  Pass::run(*set, pass, read, parse, std::move(partitions));

  std::vector<RawBlock> blocks;
  Seen seen;
  {
    Lock lock(pass.mutex);
    blocks = std::move(pass.blocks);
    seen = std::move(pass.seen);
  }
  set->too_short_ = seen.too_short;
  set->bad_ = std::move(seen.bad);
  std::ranges::sort(set->bad_, [](const BadRow& a, const BadRow& b) {
    const Json &x = a.key, &y = b.key;
    if (x.is_number() && y.is_number()) return x.number() < y.number();
    return a.shown_key < b.shown_key;
  });
  if (!set->bad_.empty() && !options.source.skip_bad)
    refuse_bad_rows(set->bad_, source);

  BusyScope busy(pack);
  std::vector<RowRef> refs = Pass::in_order(blocks, source);
  if (refs.empty())
    throw Error(
        ErrorKind::source,
        {.code = "source.empty",
         .what = "there is no row to train on",
         .where = source,
         .why = std::to_string(set->too_short_) + " rows were too short and " +
                std::to_string(set->bad_.size()) + " not usable",
         .next = "check 'source.where' and the fields' 'min'"});
  auto count = static_cast<std::int64_t>(refs.size());
  auto ref = [&](std::int64_t id) {
    return refs[static_cast<std::size_t>(id)];
  };
  auto mark = [&](std::int64_t id) {
    return static_cast<Side>(blocks[ref(id).block].marks[ref(id).row]);
  };
  if (options.split.train < 1) {
    for (Side side : {Side::train, Side::val}) {
      std::vector<bool> on_side(refs.size());
      for (std::int64_t id = 0; id < count; ++id)
        on_side[static_cast<std::size_t>(id)] = mark(id) == side;
      (side == Side::train ? set->train_ : set->val_) = SideIndex(on_side);
    }
  } else {
    set->train_ = SideIndex(count);
    set->val_ = SideIndex(std::int64_t{0});
  }
  set->fitted_ =
      options.fitted
          ? *options.fitted
          : fit(options.fields, seen,
                boolean_columns(options.fields, set->source_->schema()),
                {.count = count,
                 .row =
                     [&](std::int64_t id) {
                       return blocks[ref(id).block].row(ref(id).row);
                     },
                 .is_train =
                     [&](std::int64_t id) { return mark(id) == Side::train; }});

  HostLimits host = read_host_limits();
  set->plan_ =
      plan_tiers({.rows = count,
                  .row_bytes = set->layout_.row_bytes,
                  .slot_bytes = options.slot_bytes,
                  .wish = options.cache},
                 {.ram_free = host.memory_free,
                  .ram_origin = host.memory_origin,
                  .device_free = device.memory().free,
                  .device_is_host = device.memory_kind() == MemoryKind::cpu});
  if (options.planned) options.planned(set->plan_);

  if (set->plan_.tier != Tier::none)
    set->table_ = std::make_unique<Table>(set->plan_.tier, count,
                                          set->layout_.row_bytes, device);
  else
    set->row_hashes_.reserve(refs.size());
  // A block is let go with its last row, so that raw and packed rows never
  // stand side by side when rows arrive in order of their keys.
  std::vector<std::uint32_t> left(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    left[b] = static_cast<std::uint32_t>(blocks[b].ends.size());
  set->keys_ = KeyList(blocks[refs[0].block].keys.type());
  set->keys_.reserve(count);
  Sha256 fingerprint;
  for (std::int64_t id = 0; id < count; ++id) {
    RawBlock& block = blocks[ref(id).block];
    std::int64_t row = ref(id).row;
    set->keys_.append(block.keys, row);
    std::uint64_t hash = block.row_hash(row);
    std::string key = set->keys_.canonical(id);
    std::uint64_t size = key.size();
    fingerprint.add(std::as_bytes(std::span(&size, 1)));
    fingerprint.add(key);
    fingerprint.add(std::as_bytes(std::span(&hash, 1)));
    if (set->table_)
      pack_row(options.fields, set->layout_, set->fitted_, block.row(row),
               set->table_->append(),
               [&] { return "row " + set->keys_.shown(id); });
    else
      set->row_hashes_.push_back(hash);
    if (--left[ref(id).block] == 0) block = RawBlock();
  }
  if (set->table_) set->table_->seal();
  pack.add_items(
      count, static_cast<std::int64_t>(set->table_ ? set->table_->bytes() : 0));
  set->fingerprint_ = fingerprint.hex();
  set->stages_ = {read.numbers(), parse.numbers()};
  return set;
}

struct Dataset::RowReader::State {
  const Dataset& dataset;
  std::unique_ptr<Reader> reader;
  Preparer preparer;
  KeyList keys;
  Block block;
};

Dataset::RowReader::RowReader(const Dataset& dataset)
    : state_(new State{dataset,
                       dataset.source_->open_reader(),
                       make_preparer(dataset.options_),
                       KeyList(dataset.keys_.type()),
                       {}}) {}

Dataset::RowReader::~RowReader() = default;

void Dataset::RowReader::read(std::span<const SampleId> ids, RawBlock& rows) {
  State& s = *state_;
  s.keys.clear();
  for (SampleId id : ids) s.keys.append(s.dataset.keys_, id);
  if (read_meter != nullptr) {
    BusyScope busy(*read_meter);
    s.reader->read(s.keys, s.block);
    read_meter->add_items(s.block.rows,
                          static_cast<std::int64_t>(s.block.bytes()));
    read_meter->add_calls(1);
  } else {
    s.reader->read(s.keys, s.block);
  }
  std::optional<BusyScope> busy;
  if (prepare_meter != nullptr) busy.emplace(*prepare_meter);
  Seen seen;
  rows = s.preparer.prepare(s.block, seen);
  if (prepare_meter != nullptr)
    prepare_meter->add_items(s.block.rows,
                             static_cast<std::int64_t>(rows.values.size() * 8));
  // Rows keep their order, so the first difference names the changed row.
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto at = static_cast<std::int64_t>(i);
    bool same = at < rows.rows() &&
                rows.keys.canonical(at) == s.keys.canonical(at) &&
                rows.row_hash(at) ==
                    s.dataset.row_hashes_[static_cast<std::size_t>(ids[i])];
    if (same) continue;
    throw Error(ErrorKind::source,
                {.code = "source.row_changed",
                 .what = "row " + s.keys.shown(at) +
                         " is no longer what it was when training began",
                 .where = s.dataset.source_->shown(),
                 .why = "another program has written to the table",
                 .next = "start again, or keep the rows with \"loader.cache\": "
                         "\"ram\""});
  }
}

}  // namespace penstock
