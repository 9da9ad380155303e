#include "penstock/dataset/table/scan.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string>
#include <utility>

// One pass over a source: partitions are read and parsed, each once, by the
// thread that takes it. Two arrangements: as many readers as workers, each of
// which parses what it has read; or fewer readers (a source that allows one
// connection, say), which hand blocks to parsing threads through a bounded
// queue. With 0 workers the caller's thread does both.
//
// Parsed blocks arrive in any order and are put in order of key afterwards, so
// the result does not depend on the threads. The sum of their memory is checked
// as each arrives: beyond the limit the values of the oldest go to a file. The
// first error ends the scan: readers stop at their next
// block, the queue is closed, and all threads have ended before it is thrown.
//
// Locks: SharedParser's own, held while a parsed block is added and while
// values are written to a file, never while a block is read or parsed.

namespace penstock {
namespace {

/// Rows with their keys, as a scan gives them.
struct KeyedBlock {
  KeyList keys;
  Block block;
};

/// Adds the time of a scan to `meter`, without the time inside its sink.
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

/// The memory of a parsed block, and what its rows take until they are in
/// order: their places, a copy of their keys, and unless they are `in_order`
/// what is sorted.
std::size_t memory_of(const ParsedBlock& block, bool in_order) {
  const std::size_t order = sizeof(RowRef) + (in_order ? 0 : 18);
  std::size_t sum = block.bytes() + 2 * block.keys.memory();
  for (const Values& values : block.fields)
    sum += values.ends.size() * sizeof(values.ends[0]);
  return sum +
         static_cast<std::size_t>(block.rows()) *
             (order + sizeof(block.hashes[0]) + sizeof(block.sides[0])) +
         block.draws.size() * sizeof(block.draws[0]);
}

[[noreturn]] void refuse_too_large(std::int64_t rows, std::size_t bytes,
                                   const ScanLimit& limit, const Spill& spill,
                                   const std::string& source) {
  std::string spilled =
      spill.why_not().empty()
          ? spill.bytes() == 0 ? "" : ", with their values in a temporary file"
          : ", and writing them to a temporary file failed: " + spill.why_not();
  throw Error(
      ErrorKind::out_of_memory,
      {.code = "scan.too_large",
       .what = "the rows do not fit into the memory for the initial scan",
       .where = source,
       .why = "the first " + std::to_string(rows) + " rows take " +
              shown_bytes(bytes) + ", but the limit is " +
              shown_bytes(*limit.bytes) + ": " + limit.why + spilled,
       .next =
           spill.why_not().empty()
               ? "select fewer rows with 'source.where', or give the job more "
                 "memory"
               : "name a folder on a disk as 'loader.cache_dir', select fewer "
                 "rows with 'source.where', or give the job more memory"});
}

/// The blocks whose values are written to one file. Where values end in it is
/// counted in 32 bits.
constexpr std::size_t kRun = std::size_t{256} << 20;
constexpr std::size_t kLongestRun = std::size_t{1} << 30;

/// How much of a source some of its rows are, from 0 to 1.
class RowShare {
 public:
  RowShare(const Source& source, std::optional<std::int64_t> rows)
      : chunks_(source.abilities().by_position ? source.chunks() : nullptr),
        rows_(rows) {
    if (chunks_ != nullptr && chunks_->ends.empty()) chunks_ = nullptr;
  }
  /// Of rows by position that follow each other, else of any so many.
  double of(std::int64_t first, std::int64_t count) const {
    if (count == 0) return 0;
    if (chunks_ == nullptr)
      return rows_ && *rows_ > 0
                 ? static_cast<double>(count) / static_cast<double>(*rows_)
                 : 0;
    return chunks_before(first + count) - chunks_before(first);
  }

 private:
  /// Chunks are about equal in bytes, where rows are not.
  double chunks_before(std::int64_t position) const {
    const auto all = static_cast<double>(chunks_->ends.size());
    if (position >= chunks_->ends.back()) return 1;
    const auto chunk = static_cast<std::size_t>(chunks_->chunk_of(position));
    const std::int64_t begin = chunk == 0 ? 0 : chunks_->ends[chunk - 1];
    return (static_cast<double>(chunk) +
            static_cast<double>(position - begin) /
                static_cast<double>(chunks_->ends[chunk] - begin)) /
           all;
  }
  const ChunkMap* chunks_;
  const std::optional<std::int64_t> rows_;
};

/// Parses blocks on any thread and collects the results.
class SharedParser {
 public:
  SharedParser(const BlockParser::Options& options, StageMeter& meter,
               const ScanLimit& limit, Spill& spill, const Source& source,
               const std::vector<Partition>& partitions,
               std::function<void(const ScanProgress&)> scanned)
      : options_(options),
        meter_(meter),
        limit_(limit),
        spill_(spill),
        source_(source.shown()),
        by_position_(source.abilities().by_position),
        in_order_(by_position_ && !source.abilities().by_key),
        scanned_(std::move(scanned)) {
    for (const Partition& partition : partitions)
      begins_.push_back(partition.first);
    if (!scanned_) return;
    share_.emplace(source, limit.expected_rows);
    progress_.expected = limit.expected_rows;
  }

  BlockParser parser() const { return BlockParser(options_); }
  ParsedBlock parse(BlockParser& parser, const KeyList& keys,
                    const Block& block, ParseNotes& notes) {
    ParsedBlock rows;
    {
      BusyScope busy(meter_);
      rows = parser.parse(keys, block, notes);
      meter_.add_items(block.rows, static_cast<std::int64_t>(rows.bytes()));
    }
    if (!scanned_) return rows;
    const std::int64_t first =
        by_position_ && block.rows > 0 ? keys.integer(0) : 0;
    Lock lock(mutex_);
    progress_.rows += block.rows;
    progress_.bytes += static_cast<std::int64_t>(block.bytes());
    progress_.stored_bytes += static_cast<std::int64_t>(rows.bytes());
    progress_.share += share_->of(first, block.rows);
    scanned_(progress_);
    return rows;
  }
  void add(ParsedBlock rows, ParseNotes notes) {
    Lock lock(mutex_);
    notes_.merge(std::move(notes));
    if (rows.rows() == 0) return;
    bytes_ += memory_of(rows, in_order_);
    rows_ += rows.rows();
    blocks_.push_back(std::move(rows));
    most_ = std::max(most_, bytes_);
    while (limit_.bytes && bytes_ > *limit_.bytes)
      if (!spill_oldest())
        refuse_too_large(rows_, bytes_, limit_, spill_, source_);
  }
  /// Counts rows whose values are in a file, from when they are held.
  void count(const ScannedPart& part) {
    Lock lock(mutex_);
    for (const ParsedBlock& block : part.blocks) {
      bytes_ += memory_of(block, in_order_) - block.bytes();
      rows_ += block.rows();
    }
    most_ = std::max(most_, bytes_);
    if (limit_.bytes && bytes_ > *limit_.bytes)
      refuse_too_large(rows_, bytes_, limit_, spill_, source_);
  }
  /// Takes such rows, which are counted.
  void take(ScannedPart part) {
    Lock lock(mutex_);
    notes_.merge(std::move(part.notes));
    std::ranges::move(part.blocks, std::back_inserter(runs_));
  }
  /// Tells of the rows of a partition that an interrupted scan has left.
  void tell_found(const Partition& partition, const ScannedPart& part) {
    if (!scanned_) return;
    Lock lock(mutex_);
    const std::int64_t rows = partition.end - partition.first;
    const double share = share_->of(partition.first, rows);
    progress_.rows += rows;
    progress_.share += share;
    progress_.found_rows += rows;
    progress_.found_share += share;
    for (const ParsedBlock& block : part.blocks)
      progress_.stored_bytes += static_cast<std::int64_t>(block.bytes());
    scanned_(progress_);
  }
  void give(Scan& scan) {
    Lock lock(mutex_);
    scan.blocks = std::move(runs_);
    std::ranges::move(blocks_, std::back_inserter(scan.blocks));
    scan.notes = std::move(notes_);
    scan.notes.sort();
    scan.memory = {.bytes = most_,
                   .limit = limit_.bytes,
                   .spilled = spill_.bytes(),
                   .readers = limit_.reader_bytes};
  }

 private:
  /// False where there is nothing left to write, or nowhere to write it.
  bool spill_oldest() PENSTOCK_REQUIRES(mutex_) {
    const std::size_t enough = std::min(kRun, *limit_.bytes / 4);
    std::vector<ParsedBlock> oldest;
    std::size_t values = 0, memory = 0;
    const auto last = blocks_.begin() + bring_forward_one_partition();
    auto end = blocks_.begin();
    for (; end != last && values < enough; ++end) {
      if (!oldest.empty() && values + end->bytes() > kLongestRun) break;
      values += end->bytes();
      memory += memory_of(*end, in_order_);
      oldest.push_back(std::move(*end));
    }
    blocks_.erase(blocks_.begin(), end);
    if (values == 0 || !spill_.why_not().empty()) return false;
    runs_.push_back(spill_.write(oldest));
    bytes_ -= memory;
    bytes_ += memory_of(runs_.back(), in_order_) - runs_.back().bytes();
    return true;
  }

  /// Of rows by position, those of one partition follow each other: in a run of
  /// their own they need no sorting. How many blocks the one has that holds
  /// most; they come first.
  std::ptrdiff_t bring_forward_one_partition() PENSTOCK_REQUIRES(mutex_) {
    if (!in_order_) return std::ssize(blocks_);
    auto partition_of = [this](const ParsedBlock& block) {
      return std::ranges::upper_bound(begins_, block.keys.integer(0)) -
             begins_.begin();
    };
    std::vector<std::size_t> held(begins_.size() + 1);
    for (const ParsedBlock& block : blocks_)
      held[static_cast<std::size_t>(partition_of(block))] += block.bytes();
    const auto most = std::ranges::max_element(held) - held.begin();
    // Of clang 14, std::ranges has no subrange.
    const auto others = std::stable_partition(
        blocks_.begin(), blocks_.end(),
        [&](const ParsedBlock& block) { return partition_of(block) == most; });
    return others - blocks_.begin();
  }

  const BlockParser::Options& options_;
  StageMeter& meter_;
  const ScanLimit& limit_;
  Spill& spill_;
  const std::string source_;
  const bool by_position_;
  const bool in_order_;  // within a partition, which has no keys of its own
  std::vector<std::int64_t> begins_;  // of partitions, by position
  const std::function<void(const ScanProgress&)> scanned_;
  std::optional<RowShare> share_;  // where `scanned_` is told
  Mutex mutex_;
  ScanProgress progress_ PENSTOCK_GUARDED_BY(mutex_);
  std::size_t bytes_ PENSTOCK_GUARDED_BY(mutex_) = 0;  // of memory, held now
  std::size_t most_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::int64_t rows_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::vector<ParsedBlock> runs_ PENSTOCK_GUARDED_BY(mutex_);  // in files
  std::vector<ParsedBlock> blocks_ PENSTOCK_GUARDED_BY(mutex_);
  ParseNotes notes_ PENSTOCK_GUARDED_BY(mutex_);
};

/// The partitions of a scan, each to be read once, by any free thread.
struct PartitionQueue {
  Source& source;
  const std::vector<Partition> all = {};
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};

  const Partition* take() {
    std::size_t at = next.fetch_add(1);
    return at < all.size() && !failed.load() ? &all[at] : nullptr;
  }
};

/// Reads a partition and parses it on this thread: the text of a block stays in
/// its processor's cache. `take(block, notes)`.
template <class Take>
void read_and_parse(const Partition& partition, PartitionQueue& partitions,
                    Reader& reader, BlockParser& parser, SharedParser& parsing,
                    StageMeter& meter, Take take) {
  ScanTimer timer(meter);
  reader.scan(partition, {}, [&](KeyList& keys, Block& block) {
    timer.stop();
    meter.add_items(block.rows, static_cast<std::int64_t>(block.bytes()));
    ParseNotes notes;
    ParsedBlock rows = parsing.parse(parser, keys, block, notes);
    take(std::move(rows), std::move(notes));
    timer.start();
    return !partitions.failed.load();
  });
  timer.stop();
}

/// Where parsed rows go, besides to memory.
struct ScanFiles {
  const ScanParts* parts = nullptr;
  StoreOfScan* store = nullptr;  // where there are parts

  void add(const Partition& partition, ScannedPart part,
           SharedParser& parsing) const {
    parsing.count(part);
    if (store == nullptr) return parsing.take(std::move(part));
    store->add(partition.index, std::move(part),
               [&](ScannedPart written) { parsing.take(std::move(written)); });
  }
};

/// All that are not taken yet; through parts, where there are such.
void read_and_parse(PartitionQueue& partitions, const ScanFiles& files,
                    SharedParser& parsing, StageMeter& meter) {
  const ScanParts* parts = files.parts;
  BlockParser parser = parsing.parser();
  std::unique_ptr<Reader> reader = open_checked_reader(partitions.source);
  while (const Partition* partition = partitions.take()) {
    if (parts == nullptr) {
      read_and_parse(*partition, partitions, *reader, parser, parsing, meter,
                     [&](ParsedBlock rows, ParseNotes notes) {
                       parsing.add(std::move(rows), std::move(notes));
                     });
      continue;
    }
    if (std::optional<ScannedPart> found = parts->find(*partition)) {
      parsing.tell_found(*partition, *found);
      files.add(*partition, std::move(*found), parsing);
      continue;
    }
    ScanParts::Writer part(*parts, *partition);
    ParseNotes notes;
    read_and_parse(*partition, partitions, *reader, parser, parsing, meter,
                   [&](ParsedBlock rows, ParseNotes of_block) {
                     notes.merge(std::move(of_block));
                     part.add(std::move(rows));
                   });
    if (partitions.failed.load()) return;  // it was not read to its end
    files.add(*partition, part.seal(std::move(notes)), parsing);
  }
}

void read_in_parallel(PartitionQueue& partitions, int readers,
                      const ScanFiles& files, SharedParser& parsing,
                      StageMeter& meter) {
  Mutex mutex;
  std::exception_ptr first;
  Stage stage(
      {.name = "read",
       .workers = readers,
       .body = [&](int) { read_and_parse(partitions, files, parsing, meter); },
       .failed =
           [&](std::exception_ptr error) {
             partitions.failed = true;
             Lock lock(mutex);
             if (!first) first = std::move(error);
           }});
  stage.join();
  if (first) std::rethrow_exception(first);
}

/// Reading threads hand blocks to parsing threads; blocks that are used up go
/// back, so that the steady state allocates nothing but the raw rows.
class ReadParsePipeline {
 public:
  ReadParsePipeline(PartitionQueue& partitions, int readers,
                    SharedParser& parsing, int workers, StageMeter& read,
                    StageMeter& prepare)
      : partitions_(partitions),
        readers_(readers),
        parsing_(parsing),
        workers_(workers),
        read_(read),
        prepare_(prepare),
        filled_(static_cast<std::size_t>(workers) + 1),
        used_(static_cast<std::size_t>(workers) * 2) {}

  void run() {
    auto failed = [this](std::exception_ptr error) { filled_.fail(error); };
    Stage parse({.name = "prepare",
                 .workers = workers_,
                 .body = [this](int) { parse_blocks(); },
                 .failed = failed});
    try {
      // A single reader is this thread.
      Stage scan({.name = "read",
                  .workers = readers_ == 1 ? 0 : readers_,
                  .body = [this](int) { read_partitions(); },
                  .failed = failed,
                  .last = [this] { filled_.close(); }});
      if (readers_ == 1) scan.run_inline();
    } catch (...) {
      filled_.close();  // or the parsing threads would wait for ever
      throw;
    }
    parse.join();
    while (filled_.pop()) {  // throws the error that ended a thread
    }
  }

 private:
  void parse_blocks() {
    BlockParser parser = parsing_.parser();
    for (;;) {
      Nanoseconds asked = wall_clock().now();
      std::optional<KeyedBlock> rows = filled_.pop();
      prepare_.add_blocked_get(wall_clock().now() - asked);
      if (!rows) return;
      ParseNotes notes;
      ParsedBlock parsed =
          parsing_.parse(parser, rows->keys, rows->block, notes);
      parsing_.add(std::move(parsed), std::move(notes));
      rows->block.clear();
      used_.try_push(std::move(*rows));
    }
  }

  void read_partitions() {
    std::unique_ptr<Reader> reader = open_checked_reader(partitions_.source);
    while (const Partition* partition = partitions_.take()) {
      ScanTimer timer(read_);
      reader->scan(*partition, {}, [&](KeyList& keys, Block& block) {
        timer.stop();
        read_.add_items(block.rows, static_cast<std::int64_t>(block.bytes()));
        Nanoseconds asked = wall_clock().now();
        bool more = filled_.push({std::move(keys), std::move(block)});
        if (auto spare = used_.try_pop()) {
          keys = std::move(spare->keys);
          block = std::move(spare->block);
        }
        read_.add_blocked_put(wall_clock().now() - asked);
        timer.start();
        return more;
      });
      timer.stop();
    }
  }

  PartitionQueue& partitions_;
  const int readers_;
  SharedParser& parsing_;
  const int workers_;
  StageMeter& read_;
  StageMeter& prepare_;
  Queue<KeyedBlock> filled_;
  Queue<KeyedBlock> used_;
};

/// Into how many partitions rows are shared out: several for each reader where
/// that costs nothing, so that none waits long for the last of them.
int shares_of(const Source& source, int readers) {
  constexpr int kOfReader = 4;
  return source.abilities().by_position && readers > 1 ? kOfReader * readers
                                                       : readers;
}

}  // namespace

Scan scan_table(Source& source, const BlockParser::Options& parse,
                const TableDatasetOptions& options, const ScanLimit& limit,
                Spill& spill, const ScanParts* parts, StoreOfScan* store,
                const std::vector<Partition>* only) {
  const int workers = std::max(1, options.workers);
  const int most = limit.readers;
  PartitionQueue partitions{
      source, only != nullptr
                  ? *only
                  : source.partitions(parts != nullptr
                                          ? ScanParts::partitions(
                                                source.count().rows.value_or(0))
                                          : shares_of(source, most))};
  const int readers = std::min(most, static_cast<int>(partitions.all.size()));
  const bool alone = options.workers == 0;
  const bool pipeline =
      parts == nullptr && (readers != workers || readers == 1);
  StageMeter read("read", alone ? 1 : readers, "", StageWork::reads);
  StageMeter prepare(stage_names(options.fields).parse, workers, "",
                     StageWork::parses);
  SharedParser parsing(parse, prepare, limit, spill, source, partitions.all,
                       options.scanned);
  const ScanFiles files{.parts = parts, .store = store};
  if (alone)
    read_and_parse(partitions, files, parsing, read);
  else if (pipeline)
    ReadParsePipeline(partitions, readers, parsing, workers, read, prepare)
        .run();
  else
    read_in_parallel(partitions, readers, files, parsing, read);
  Scan scan;
  parsing.give(scan);
  scan.stages = {read.numbers(), prepare.numbers()};
  return scan;
}

}  // namespace penstock
