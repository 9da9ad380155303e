#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/device/device.h"
#include "penstock/transforms/field_facts.h"

namespace penstock {

/// Rows of one field as runs of bytes: parsed values, which the kind alone
/// understands, or stored runs.
struct Values {
  Bytes bytes;
  std::size_t width = 0;            ///< of every run; 0: as `ends` says
  std::vector<std::uint32_t> ends;  ///< where each row's run ends in `bytes`

  std::span<const std::byte> row(std::int64_t at) const {
    auto i = static_cast<std::size_t>(at);
    if (width != 0) return bytes.span().subspan(i * width, width);
    std::size_t start = i == 0 ? 0 : ends[i - 1];
    return bytes.span().subspan(start, ends[i] - start);
  }
  std::int64_t rows() const {
    return static_cast<std::int64_t>(width != 0 ? bytes.size() / width
                                                : ends.size());
  }
  /// Of a row of its own width whose bytes have been appended.
  void end_row() { ends.push_back(static_cast<std::uint32_t>(bytes.size())); }
  /// Keeps the memory.
  void clear() {
    bytes.clear();
    ends.clear();
  }
};

/// A row's parsed values, wherever they are kept.
using ValueRow = std::span<const std::byte>;

/// What is wrong with a row: a value, because a bad row is not an error of the
/// program.
struct RowFault {
  std::int64_t row = 0;    ///< of those that were given
  std::string place = {};  ///< the column or key that holds it
  std::string why = {};    ///< what was found and what was expected
  std::int64_t byte = -1;  ///< offset in the column's text, when known
  std::string what = {};   ///< what could not be done, for an error
  std::string next = {};   ///< the next step, where the kind knows one
  bool too_short = false;  ///< left out by the kind's own rule, not bad
  /// Of an encoder: what it decodes is damaged, which makes it a bad sample of
  /// its batch, as one that shows when it is finished. Else what cannot be
  /// encoded ends the preparation of all rows.
  bool damaged = false;
};

/// The rows that a call rejects, in ascending order, at most one fault each.
struct Faults {
  std::vector<RowFault> rows;

  void reject(RowFault fault) { rows.push_back(std::move(fault)); }
  /// The row does not belong to the data set by the field's own rule.
  void leave_out(std::int64_t row) {
    rows.push_back({.row = row, .too_short = true});
  }
};

/// Kinds are also written by users: throws Error(internal),
/// transform.wrong_row, unless these are among `rows` rows, in ascending order.
void check_rejected(std::span<const RowFault> rejected, std::int64_t rows,
                    const std::string& field);

/// Where rows of one field are stored. Row r of the tensors begins at
/// `data` + r * `stride`, each at the offset that a RowLayout of the field
/// alone gives; runs are appended to `runs`, one for each row.
struct StoredRows {
  std::byte* data = nullptr;
  std::size_t stride = 0;
  Values* runs = nullptr;  ///< null where the stored form has no run
};

/// A stored row of one field that is to be finished.
struct StoredRow {
  const std::byte* tensors = nullptr;   ///< as StoredRows::data of this row
  std::span<const std::byte> run = {};  ///< its whole run
  /// Where a device finishes it: what the host sees of the run, at least
  /// StoredForm::seen_of(), or all of it.
  std::span<const std::byte> head = {};
  SampleRange range;  ///< what of it is wanted
  /// Tells apart the times that the sample comes in one epoch, so that each of
  /// them draws numbers of its own. 0 where it comes once, in its own place.
  /// It depends on the order and the data alone, never on threads, ranks or
  /// restarts:
  ///  - where a side names samples more than once, the rank within the side;
  ///  - in the place of a bad sample, -1 - that sample's id, or -1 - its
  ///    occurrence where it comes more than once itself.
  std::int64_t occurrence = 0;
};

/// What random numbers depend on besides the sample.
struct DrawKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;

  /// The numbers of one operation on one sample.
  Random random(const StoredRow& row, std::uint64_t operation) const {
    return Random(
        seed, static_cast<std::uint64_t>(epoch),
        static_cast<std::uint64_t>(row.range.sample),
        mix64(operation) + static_cast<std::uint64_t>(row.occurrence));
  }
};

/// Where the rows of a call go in one tensor of a batch: row r begins at
/// `data` + r * `bytes`, or, where there are starts, `data` + starts[r] *
/// `bytes`.
struct TensorPlace {
  std::byte* data = nullptr;
  std::size_t bytes = 0;  ///< of a row; of an element where lengths differ
  std::span<const std::int64_t> starts = {};   ///< where lengths differ
  std::span<const std::int32_t> lengths = {};  ///< elements of each row

  std::byte* row(std::size_t at) const {
    return data +
           (starts.empty() ? at : static_cast<std::size_t>(starts[at])) * bytes;
  }
};

/// Rows of a batch that a device finishes: their bytes and their places are in
/// its memory, all else is the host's and must be copied by the call. A run may
/// have room behind its end.
struct QueuedRows {
  std::span<const StoredRow> rows;
  std::size_t tensor_bytes = 0;  ///< of StoredRow::tensors, in each row
  DrawKey key;
  std::span<const TensorPlace> to;  ///< as FieldFinisher::finish has it
  std::byte* scratch = nullptr;     ///< QueueNeeds::scratch_bytes for each row
};

/// The columns that a field requested, as the source has them: block column
/// `at[i]`, of type `types[i]`, answers request i of FieldKind::columns().
struct FieldColumns {
  std::vector<ColumnInfo> info;
  std::vector<ColumnType> types;
  std::vector<std::size_t> at;
};

/// A file that a column names, as it was when it was read.
struct NamedFile {
  std::string path;
  std::uint64_t stamp = 0;  ///< digest_of() its FileStamp
  auto operator<=>(const NamedFile&) const = default;
};

/// What parsers record besides the values: of kept rows only. The result does
/// not depend on the order of merging.
class FieldNotes {
 public:
  virtual ~FieldNotes() = default;
  /// Adds those of other blocks, of the same field; what is left in `other`
  /// does not matter.
  virtual void merge(FieldNotes& other) = 0;
  /// All of it, for BoundField::notes_of(); empty: it cannot be written down,
  /// and a scan that is interrupted begins again.
  virtual Bytes saved() const { return {}; }
  /// The files that were read because a column names them, of all rows: what is
  /// kept of the rows is that of these versions of them.
  virtual std::span<const NamedFile> files() const { return {}; }
};

/// Turns blocks into values. One per thread; owns scratch memory and allocates
/// nothing per row once warm.
class FieldParser {
 public:
  virtual ~FieldParser() = default;
  /// Appends a run for every row of the block, also for those it rejects
  /// (what is in these does not matter). Throws nothing because of data.
  virtual void parse(const Block& block, Values& out, Faults& faults) = 0;
  /// What stands for the values in hashes, the same whatever width the source
  /// gave its numbers: `values` itself, or what the next call overwrites.
  virtual const Values& canonical(const Values& values) { return values; }
  /// Rows of the block that was parsed last, ascending, which are kept: `keys`
  /// ends with theirs.
  virtual void keep(std::span<const std::int64_t>, const KeyList&) {}
  /// What keep() left since the last call; null where the kind has no notes.
  virtual std::unique_ptr<FieldNotes> take_notes() { return nullptr; }
};

/// Finds a field's statistics over the rows of a data set in one or more
/// passes. Threads add ranges of rows to partial fits, which are then merged in
/// order of id, so that the result does not depend on the threads.
class FieldFit {
 public:
  /// Ids per call of add(): sums run over these blocks.
  static constexpr std::int64_t kBlock = 1024;

  virtual ~FieldFit() = default;
  /// An empty partial fit of the current pass.
  virtual std::unique_ptr<FieldFit> part() const = 0;
  /// The rows of one block of ids, the next after the last one; `train[i]` is
  /// 1 where the row is on that side.
  virtual void add(std::span<const ValueRow> rows,
                   std::span<const std::uint8_t> train) = 0;
  /// From here on rows are parsed as those of `other`, a fit of the same field
  /// over another source: a part of this one then adds rows of that source.
  /// Throws Error(request) where their values cannot be fitted together.
  virtual void read_as(const FieldFit& /*other*/) {}
  /// Adds a partial fit of the ids that follow.
  virtual void merge(FieldFit& later) = 0;
  /// Ends a pass; true: another one is needed.
  virtual bool again() = 0;
  /// After the last pass. Throws Error(transform).
  virtual Json statistics() = 0;
};

/// Turns values into their stored form, once for all epochs. One per thread. It
/// writes every byte of its tensors in each row that it does not reject: there
/// may be those of other rows before.
class FieldEncoder {
 public:
  virtual ~FieldEncoder() = default;
  /// Stores each row, whatever the rows beside it, and appends a run for every
  /// row where there are runs, also for those that it rejects.
  virtual void encode(std::span<const ValueRow> rows, const StoredRows& out,
                      Faults& faults) = 0;
};

/// What a stream of a device holds: so much of its memory, and so much pinned;
/// and what of its memory all streams hold together.
struct StreamBytes {
  std::size_t device = 0, pinned = 0, of_all_streams = 0;
};

/// What queueing a finisher takes of a device.
struct QueueNeeds {
  std::size_t scratch_bytes = 0;  ///< of its memory, for each row
  StreamBytes stream_bytes = {};  ///< that each of its streams holds
};

/// Puts stored rows into a batch, every time they come. One per thread.
class FieldFinisher {
 public:
  virtual ~FieldFinisher() = default;
  /// Writes every byte of every row, in each of the field's outputs. What it
  /// draws depends on `key` and the row alone. What it throws ends the loader.
  virtual void finish(std::span<const StoredRow> rows, const DrawKey& key,
                      std::span<const TensorPlace> to) = 0;
  /// Rows of the last finish() that turned out to be bad, ascending, where that
  /// shows only when they are finished: damaged pictures. Whether a row is bad
  /// depends on its stored form alone, never on what is drawn. A device rejects
  /// none: what it finishes is inspected before.
  virtual std::span<const RowFault> rejected() const { return {}; }
  /// Of rows that are to be queued, of which StoredRow::head alone is there:
  /// rejected() then has those that finish() would reject.
  virtual void inspect(std::span<const StoredRow> /*rows*/) {}
  /// What queue() takes of devices with such memory: the stored form then goes
  /// there, and finish() is not called. Only fields whose outputs are of equal
  /// size are finished there. Nullopt: it cannot be queued on them.
  virtual std::optional<QueueNeeds> queue_needs(MemoryKind /*memory*/) const {
    return std::nullopt;
  }
  /// Queues what finish() does: the same bytes, or nearly, where a device
  /// decodes. This finisher lives until the
  /// stream has done it. As it is: on streams that can run code of the host.
  virtual void queue(const QueuedRows& rows, Stream& stream);
};

/// A field over the columns of one source. Immutable, so thread-safe.
class BoundField {
 public:
  virtual ~BoundField() = default;
  /// One more, for one thread: all parse a row to the same values.
  virtual std::unique_ptr<FieldParser> parser() const = 0;
  /// One that also rejects what would show when a row is encoded or finished,
  /// as damage of a file that is decoded: for who looks for it beforehand, and
  /// has the time. As it is: there is no such thing.
  virtual std::unique_ptr<FieldParser> checking_parser() const {
    return parser();
  }
  /// Finds statistics, given the notes of all parsers (null where they made
  /// none); null for a kind that has no statistics. Throws Error(transform).
  virtual std::unique_ptr<FieldFit> fit(const FieldNotes* /*notes*/) const {
    return nullptr;
  }
  /// What FieldNotes::saved() gave, of this field; null: none.
  virtual std::unique_ptr<FieldNotes> notes_of(
      std::span<const std::byte> /*saved*/) const {
    return nullptr;
  }
  /// Statistics without any data, where the encoding depends on none; nullopt
  /// where it must be fitted.
  virtual std::optional<Json> unfitted() const {
    if (fit(nullptr) != nullptr) return std::nullopt;
    return Json();
  }
  /// True where parsers may leave out rows by the kind's own rule: which rows
  /// belong to the data set is then known after a scan alone.
  virtual bool may_leave_out() const { return false; }
  /// Throws Error(request), with `path` in front, for statistics of another
  /// field. As it is: values are stored as they were parsed.
  virtual std::unique_ptr<FieldEncoder> encoder(const Json& statistics,
                                                const std::string& path) const;
};

/// Error(request) of a setting that names a column of another type than
/// `expected` says: "expected texts".
Error column_error(std::string code, std::string setting,
                   const ColumnInfo& column, ColumnType type,
                   const std::string& expected, std::string next);

/// How a field is made: an entry of a job's `fields` section, checked.
/// Immutable, so thread-safe.
///
/// A record goes through three steps: parse (once; hashed for the
/// fingerprint), encode (once, with the statistics; its result is what a cache
/// keeps), finish (every time, into the batch: by a copy, or with random
/// numbers that depend on seed, epoch and sample). All are pure, and each may
/// reject a row.
class FieldKind {
 public:
  virtual ~FieldKind() = default;
  /// What it is, as far as that shows before any column is seen.
  const FieldFacts& facts() const { return facts_; }
  /// Throws Error(request) where the columns cannot be what the field needs.
  virtual std::shared_ptr<const BoundField> bind(
      FieldColumns columns) const = 0;
  /// For the train side or another; null: the stored form is copied unchanged.
  virtual std::unique_ptr<FieldFinisher> finisher(bool /*train*/) const {
    return nullptr;
  }
  /// The bytes of the run that is stored of a parsed value, as far as these
  /// show without encoding it. As it is: its own.
  virtual std::size_t stored_run(ValueRow value) const { return value.size(); }
  /// The same field where it is a job's only one; null: it is no other then.
  virtual std::shared_ptr<const FieldKind> alone() const { return nullptr; }

 protected:
  explicit FieldKind(FieldFacts facts);

 private:
  FieldFacts facts_;
};

/// One entry of a job's `fields` section.
struct Field {
  std::string name;
  std::shared_ptr<const FieldKind> kind;
};

}  // namespace penstock
