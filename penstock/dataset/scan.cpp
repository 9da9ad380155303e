#include "penstock/dataset/scan.h"

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
/// order: their places, what is sorted, and a copy of their keys.
std::size_t memory_of(const ParsedBlock& block) {
  constexpr std::size_t kOrder = sizeof(RowRef) + 18;
  std::size_t sum = block.bytes() + 2 * block.keys.memory();
  for (const Values& values : block.fields)
    sum += values.ends.size() * sizeof(values.ends[0]);
  return sum +
         static_cast<std::size_t>(block.rows()) *
             (kOrder + sizeof(block.hashes[0]) + sizeof(block.sides[0])) +
         block.draws.size() * sizeof(block.draws[0]);
}

[[noreturn]] void refuse_too_large(std::int64_t rows, std::size_t bytes,
                                   const ScanLimit& limit, const Spill& spill,
                                   const std::string& source) {
  std::string spilled =
      spill.why_not().empty()
          ? spill.bytes() == 0 ? "" : ", with their values in a temporary file"
          : ", and no temporary file can take them: " + spill.why_not();
  throw Error(
      ErrorKind::out_of_memory,
      {.code = "scan.too_large",
       .what = "the rows do not fit into the memory of the initial scan",
       .where = source,
       .why = "the first " + std::to_string(rows) + " rows take " +
              shown_bytes(bytes) + ", the limit is " +
              shown_bytes(*limit.bytes) + ": " + limit.why + spilled,
       .next =
           spill.why_not().empty()
               ? "select fewer rows with 'source.where', or give the job more "
                 "memory"
               : "name a folder on a disk as 'loader.cache_dir', select fewer "
                 "rows with 'source.where', or give the job more memory"});
}

/// What a scan takes beside its parsed rows: blocks on their way, the
/// database's cache, memory that the allocator keeps.
constexpr std::size_t kBesidesRows = std::size_t{48} << 20;

/// The blocks whose values are written to one file. Where values end in it is
/// counted in 32 bits.
constexpr std::size_t kRun = std::size_t{256} << 20;
constexpr std::size_t kLongestRun = std::size_t{1} << 30;

/// Parses blocks on any thread and collects the results.
class SharedParser {
 public:
  SharedParser(const BlockParser::Options& options, StageMeter& meter,
               const ScanLimit& limit, Spill& spill, const std::string& source,
               std::function<void(const ScanProgress&)> scanned,
               ScanProgress progress)
      : options_(options),
        meter_(meter),
        limit_(limit),
        spill_(spill),
        source_(source),
        scanned_(std::move(scanned)),
        progress_(progress) {}

  BlockParser parser() const { return BlockParser(options_); }
  void parse(BlockParser& parser, const KeyList& keys, const Block& block) {
    ParseNotes notes;
    ParsedBlock rows;
    {
      BusyScope busy(meter_);
      rows = parser.parse(keys, block, notes);
      meter_.add_items(block.rows, static_cast<std::int64_t>(rows.bytes()));
    }
    Lock lock(mutex_);
    notes_.merge(std::move(notes));
    progress_.rows += block.rows;
    progress_.bytes += static_cast<std::int64_t>(block.bytes());
    if (scanned_) scanned_(progress_);
    if (rows.rows() == 0) return;
    bytes_ += memory_of(rows);
    rows_ += rows.rows();
    blocks_.push_back(std::move(rows));
    most_ = std::max(most_, bytes_);
    while (limit_.bytes && bytes_ > *limit_.bytes)
      if (!spill_oldest())
        refuse_too_large(rows_, bytes_, limit_, spill_, source_);
  }
  void give(Scan& scan) {
    Lock lock(mutex_);
    scan.blocks = std::move(runs_);
    std::ranges::move(blocks_, std::back_inserter(scan.blocks));
    scan.notes = std::move(notes_);
    scan.notes.sort();
    scan.memory = {
        .bytes = most_, .limit = limit_.bytes, .spilled = spill_.bytes()};
  }

 private:
  /// False where there is nothing left to write, or nowhere to write it.
  bool spill_oldest() PENSTOCK_REQUIRES(mutex_) {
    const std::size_t enough = std::min(kRun, *limit_.bytes / 4);
    std::vector<ParsedBlock> oldest;
    std::size_t values = 0, memory = 0;
    auto end = blocks_.begin();
    for (; end != blocks_.end() && values < enough; ++end) {
      if (!oldest.empty() && values + end->bytes() > kLongestRun) break;
      values += end->bytes();
      memory += memory_of(*end);
      oldest.push_back(std::move(*end));
    }
    blocks_.erase(blocks_.begin(), end);
    if (values == 0 || !spill_.why_not().empty()) return false;
    runs_.push_back(spill_.write(oldest));
    bytes_ -= memory;
    bytes_ += memory_of(runs_.back()) - runs_.back().bytes();
    return true;
  }

  const BlockParser::Options& options_;
  StageMeter& meter_;
  const ScanLimit& limit_;
  Spill& spill_;
  const std::string& source_;
  const std::function<void(const ScanProgress&)> scanned_;
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

/// Parses on the thread that reads: the text of a block stays in its
/// processor's cache.
void read_and_parse(PartitionQueue& partitions, SharedParser& parsing,
                    StageMeter& meter) {
  BlockParser parser = parsing.parser();
  std::unique_ptr<Reader> reader = open_checked_reader(partitions.source);
  while (const Partition* partition = partitions.take()) {
    ScanTimer timer(meter);
    reader->scan(*partition, {}, [&](KeyList& keys, Block& block) {
      timer.stop();
      meter.add_items(block.rows, static_cast<std::int64_t>(block.bytes()));
      parsing.parse(parser, keys, block);
      timer.start();
      return !partitions.failed.load();
    });
    timer.stop();
  }
}

void read_in_parallel(PartitionQueue& partitions, int readers,
                      SharedParser& parsing, StageMeter& meter) {
  Mutex mutex;
  std::exception_ptr first;
  Stage stage({.name = "read",
               .workers = readers,
               .body = [&](int) { read_and_parse(partitions, parsing, meter); },
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
    {
      // A single reader is this thread.
      Stage scan({.name = "read",
                  .workers = readers_ == 1 ? 0 : readers_,
                  .body = [this](int) { read_partitions(); },
                  .failed = failed,
                  .last = [this] { filled_.close(); }});
      if (readers_ == 1) scan.run_inline();
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
      parsing_.parse(parser, rows->keys, rows->block);
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

}  // namespace

std::string ScanLimit::text() const {
  return (bytes ? shown_bytes(*bytes) + ": " : "no limit: ") + why;
}

ScanLimit scan_limit(std::optional<std::size_t> chosen) {
  if (chosen) return {chosen, "chosen by 'scan_bytes'"};
  HostLimits host = read_host_limits();
  if (!host.memory_free) return {std::nullopt, "free memory is unknown"};
  auto share = static_cast<std::size_t>(kShareOfFree *
                                        static_cast<double>(*host.memory_free));
  const std::size_t besides = std::min(kBesidesRows, share / 2);
  return {share - besides, "80 % of " + shown_bytes(*host.memory_free) +
                               " free (" + host.free_origin + "), less " +
                               shown_bytes(besides)};
}

Scan scan_table(Source& source, const BlockParser::Options& parse,
                const TableDatasetOptions& options, const ScanLimit& limit,
                Spill& spill) {
  const int workers = std::max(1, options.workers);
  const int connections = connections_of(options.source);
  int most = connections > 0 ? connections : workers;
  if (source.abilities().global_lock) most = 1;
  PartitionQueue partitions{source, source.partitions(most)};
  const int readers = std::min(most, static_cast<int>(partitions.all.size()));
  const bool alone = options.workers == 0;
  const bool pipeline = readers != workers || readers == 1;
  StageMeter read("read", alone ? 1 : readers);
  StageMeter prepare("prepare", workers);
  ScanProgress progress;
  if (options.scanned) progress.expected = source.count().rows;
  SharedParser parsing(parse, prepare, limit, spill, source.shown(),
                       options.scanned, progress);
  if (alone)
    read_and_parse(partitions, parsing, read);
  else if (pipeline)
    ReadParsePipeline(partitions, readers, parsing, workers, read, prepare)
        .run();
  else
    read_in_parallel(partitions, readers, parsing, read);
  Scan scan;
  parsing.give(scan);
  scan.stages = {read.numbers(), prepare.numbers()};
  return scan;
}

}  // namespace penstock
