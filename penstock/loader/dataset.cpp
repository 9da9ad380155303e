#include "penstock/loader/dataset.h"

#include <algorithm>

#include "penstock/loader/gather_filler.h"
#include "penstock/loader/key_order.h"
#include "penstock/loader/pass.h"
#include "penstock/loader/read_filler.h"

namespace penstock {

std::vector<Wanted> wanted_of(const DatasetOptions& options) {
  std::vector<Wanted> wanted;
  for (const NeededColumn& column : needed_columns(options.fields))
    wanted.push_back({.column = column.name,
                      .as = column.json      ? ReadAs::json
                            : column.integer ? ReadAs::integer
                                             : ReadAs::number,
                      .setting = column.setting,
                      .rounded = column.rounded});
  if (!options.split.by.empty())
    wanted.push_back({.column = options.split.by,
                      .as = ReadAs::value,
                      .setting = "split.by",
                      .hashed = true});
  return wanted;
}

namespace {

constexpr std::size_t kFingerprintRun = 1024;  // rows

/// A text that holds a time would be rounded as any other time is; most texts
/// hold none.
[[noreturn]] void refuse_text(const Field& field, const ColumnInfo& column) {
  throw Error(
      ErrorKind::request,
      {.code = "fields.text",
       .what = "cannot use the settings",
       .where = "fields." + field.name,
       .why = "column '" + column.name + "' (" + column.declared +
              ") is text, not numbers",
       .next = "name a column of numbers; if the text is an ISO-8601 time, add "
               "\"dtype\": \"float64\" or \"standardize\": true to read it "
               "as seconds since 1970"});
}

/// Seconds since 1970 need more than float32's 24 bits, and fractions of them
/// more than an integer.
void check_timestamps(const std::vector<Field>& fields, const Schema& schema) {
  for (const Field& field : fields) {
    const Columns* rule = field.columns();
    if (rule == nullptr || field.standardize || rule->dtype == Dtype::float64)
      continue;
    for (const std::string& name : rule->columns) {
      const ColumnInfo* column = schema.find(name);
      if (column != nullptr && column->text) refuse_text(field, *column);
      if (column == nullptr || !column->timestamp) continue;
      throw Error(ErrorKind::request,
                  {.code = "fields.timestamp",
                   .what = "cannot use the settings",
                   .where = "fields." + field.name,
                   .why = "column '" + name + "' (" + column->declared +
                          ") holds timestamps, whose seconds since 1970 do "
                          "not fit " +
                          std::string(name_of(rule->dtype)),
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

void check_fingerprint(const Dataset& set, const std::string& expected,
                       const std::string& source) {
  if (set.fingerprint().starts_with(expected)) return;
  throw Error(
      ErrorKind::source,
      {.code = "source.fingerprint",
       .what = "the rows are not those that the job names",
       .where = source,
       .why = "found the fingerprint " +
              set.fingerprint().substr(0, expected.size()) + " in " +
              std::to_string(set.rows()) + " rows, 'source.fingerprint' is " +
              expected,
       .next = "bring the old rows back; or, if these are the rows that you "
               "mean, write their fingerprint into the job"});
}

[[noreturn]] void refuse_no_rows(const Dataset& set,
                                 const std::string& source) {
  throw Error(
      ErrorKind::source,
      {.code = "source.empty",
       .what = "there is no row to train on",
       .where = source,
       .why = std::to_string(set.too_short()) + " rows were too short and " +
              std::to_string(set.quarantine().size()) + " not usable",
       .next = "check 'source.where' and the fields' 'min'"});
}

}  // namespace

/// The rows of a finished pass by sample id.
struct Dataset::PassRows {
  std::vector<RawBlock>& blocks;
  const std::vector<RowRef> refs;

  std::int64_t count() const { return static_cast<std::int64_t>(refs.size()); }
  RawBlock& block(SampleId id) const {
    return blocks[refs[static_cast<std::size_t>(id)].block];
  }
  std::uint32_t at(SampleId id) const {
    return refs[static_cast<std::size_t>(id)].row;
  }
  std::span<const double> row(SampleId id) const {
    return block(id).row(at(id));
  }
  Side side(SampleId id) const {
    return static_cast<Side>(block(id).marks[at(id)]);
  }
};

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
  const Schema& schema = set->source_->schema();
  const std::string source = set->source_->shown();
  check_timestamps(options.fields, schema);

  Pass pass = read_all(*set->source_, options);
  set->too_short_ = pass.seen.too_short;
  set->bad_ = std::move(pass.seen.bad);
  if (!set->bad_.empty() && !options.source.skip_bad)
    refuse_bad_rows(set->bad_, source);

  StageMeter meter("pack", std::max(1, options.workers));
  ShareOut share_out = [&](std::int64_t count, const RangeWork& work) {
    in_ranges(
        options.workers, count, [&](std::int64_t begin, std::int64_t end) {
          std::optional<BusyScope> busy;  // the first range is this thread's
          if (begin > 0) busy.emplace(meter);
          work(begin, end);
        });
  };
  {
    BusyScope busy(meter);
    PassRows rows{pass.blocks,
                  rows_by_key(pass.blocks, source, options.workers)};
    if (rows.refs.empty()) refuse_no_rows(*set, source);
    set->split(rows);
    set->fitted_ = options.fitted
                       ? *options.fitted
                       : fit(options.fields, pass.seen,
                             boolean_columns(options.fields, schema),
                             {.count = rows.count(),
                              .row = [&](SampleId id) { return rows.row(id); },
                              .is_train =
                                  [&](SampleId id) {
                                    return rows.side(id) == Side::train;
                                  },
                              .share_out = share_out});
    set->plan_tier(rows.count(), device);
    set->pack(rows, device, share_out);
    meter.add_items(rows.count(), static_cast<std::int64_t>(
                                      set->table_ ? set->table_->bytes() : 0));
  }
  check_fingerprint(*set, options.source.fingerprint, source);
  set->stages_ = std::move(pass.stages);
  set->stages_.push_back(meter.numbers());
  return set;
}

void Dataset::split(const PassRows& rows) {
  if (options_.split.train >= 1) {
    train_ = SideIndex(rows.count());
    val_ = SideIndex(std::int64_t{0});
    return;
  }
  for (Side side : {Side::train, Side::val}) {
    std::vector<bool> on_side(rows.refs.size());
    for (SampleId id = 0; id < rows.count(); ++id)
      on_side[static_cast<std::size_t>(id)] = rows.side(id) == side;
    (side == Side::train ? train_ : val_) = SideIndex(on_side);
  }
}

void Dataset::plan_tier(std::int64_t rows, const Device& device) {
  HostLimits host = read_host_limits();
  std::size_t rings = options_.ring_bytes ? options_.ring_bytes(rows) : 0;
  plan_ =
      plan_tiers({.rows = rows,
                  .row_bytes = layout_.row_bytes,
                  .ring_device_bytes = rings,
                  .ring_host_bytes = rings,
                  .wish = options_.cache},
                 {.ram_free = host.memory_free,
                  .ram_origin = host.free_origin,
                  .device_free = device.memory().free,
                  .device_is_host = device.memory_kind() == MemoryKind::cpu});
  if (options_.planned) options_.planned(plan_);
}

void Dataset::pack_rows(const PassRows& rows, SampleId first, SampleId end,
                        std::byte* out) const {
  for (SampleId id = first; id < end; ++id) {
    const RawBlock& block = rows.block(id);
    pack_row(options_.fields, layout_, fitted_, rows.row(id), out,
             [&] { return "row " + block.keys.shown(rows.at(id)); });
    out += layout_.row_bytes;
  }
}

void Dataset::pack(const PassRows& rows, Device& device,
                   const ShareOut& share_out) {
  if (plan_.tier != Tier::none)
    table_ = std::make_unique<Table>(plan_.tier, rows.count(),
                                     layout_.row_bytes, device);
  else
    row_hashes_.reserve(rows.refs.size());
  // A block is let go when its last row is packed, so that raw and packed rows
  // never stand side by side when rows arrive in order of their keys.
  std::vector<std::size_t> left;
  for (const RawBlock& block : rows.blocks) left.push_back(block.ends.size());
  keys_ = KeyList(rows.block(0).keys.type());
  keys_.reserve(rows.count());
  Sha256 fingerprint;  // of the hashes of runs of rows: it is one thread's
  std::vector<std::uint64_t> run;
  auto end_run = [&] {
    std::uint64_t hash = hash64(std::as_bytes(std::span(run)));
    fingerprint.add(std::as_bytes(std::span(&hash, 1)));
    run.clear();
  };
  const std::int64_t most = table_ ? table_->most_rows() : rows.count();
  for (SampleId first = 0; first < rows.count(); first += most) {
    SampleId end = std::min(rows.count(), first + most);
    if (table_) {
      std::byte* out = table_->append(end - first);
      share_out(end - first, [&](std::int64_t from, std::int64_t to) {
        pack_rows(rows, first + from, first + to,
                  out + static_cast<std::size_t>(from) * layout_.row_bytes);
      });
    }
    for (SampleId id = first; id < end; ++id) {
      RawBlock& block = rows.block(id);
      std::uint64_t hash = block.hashes[rows.at(id)];
      keys_.append(block.keys, rows.at(id));
      run.push_back(hash);
      if (run.size() == kFingerprintRun) end_run();
      if (!table_) row_hashes_.push_back(hash);
      if (--left[rows.refs[static_cast<std::size_t>(id)].block] == 0)
        block = RawBlock();
    }
  }
  if (!run.empty()) end_run();
  if (table_) table_->seal();
  fingerprint_ = fingerprint.hex();
}

void Dataset::select(Side side, std::span<SampleId> ranks) const {
  this->side(side).select(ranks);
}

std::unique_ptr<RowFiller> Dataset::open_filler(FillMeters& meters,
                                                bool per_sample) const {
  if (table_ == nullptr)
    return std::make_unique<ReadFiller>(*this, meters, per_sample);
  std::vector<GatherField> fields;
  for (const TensorSpec& tensor : layout_.tensors)
    fields.push_back({.table = table_->data() + tensor.offset,
                      .row_stride = layout_.row_bytes,
                      .bytes = tensor.bytes});
  return make_gather_filler(std::move(fields), plan_.tier, meters.gather);
}

}  // namespace penstock
