#include "penstock/dataset/table/table_dataset.h"

#include <algorithm>
#include <map>

#include "penstock/dataset/rank_limits.h"
#include "penstock/dataset/table/arrival_packing.h"
#include "penstock/dataset/table/larger_form.h"
#include "penstock/dataset/table/scan.h"
#include "penstock/dataset/table/store_of_scan.h"

// A table becomes a data set in one scan: read and parse, order by key (a
// sample's id is its rank), split into sides, fit statistics on the train side,
// choose the cache tier, encode and pack. Each step needs the one before it for
// all rows, and only parsing and encoding are spread over threads.
//
// Memory decides the order of packing. Where rows arrive in order of their keys
// they are packed by id, and a parsed block is freed after its last row; else
// arrival_packing.cpp packs them as they came. Statistics and the fingerprint
// are computed in order of id, so that no thread, block size or source changes
// a bit of them.
//
// After prepare() a data set is immutable and needs no lock.

namespace penstock {

namespace {

constexpr std::size_t kFingerprintRun = 1024;  // rows

/// Where a device keeps the rows that it finishes, nothing is copied there.
DatasetFacts kept_on_device(DatasetFacts facts) {
  for (std::vector<DeviceField>& side : facts.device_fields)
    for (DeviceField& field : side) {
      field.row_bytes = field.element_bytes = 0;
      field.longest_run = 0;
    }
  return facts;
}

/// Where it keeps a part of them, all tensors are made there, of the rows that
/// it keeps and of others that are copied as stored: a run of one row
/// or none.
DatasetFacts kept_in_part(DatasetFacts facts, std::size_t row_bytes) {
  facts = kept_on_device(std::move(facts));
  for (std::vector<DeviceField>& side : facts.device_fields)
    side.push_back({.field = kStoredRows,
                    .outputs = facts.outputs.size(),
                    .element_bytes = row_bytes,
                    .longest_run = 1});
  return facts;
}

}  // namespace

TableDataset::TableDataset(TableDatasetOptions options)
    : options_(std::move(options)),
      fitted_(std::make_shared<FittedFields>()),
      scan_(std::make_shared<ScanFacts>()) {
  fitted_->fields = options_.fields;
  facts_.fitted = fitted_;
  facts_.scan = scan_;
}
TableDataset::~TableDataset() = default;

std::shared_ptr<const TableDataset> TableDataset::prepare(
    const TableDatasetOptions& options, Device& device) {
  return prepare(options, open_source(options.source, requests_of(options)),
                 device);
}

void TableDataset::begin(BoundSource source) {
  layout_ = layout_of(options_.fields);
  source_ = std::move(source.source);
  bound_ = std::move(source.fields);
  bind();
  facts_.outputs = outputs_of(options_.fields);
}

/// Where there is no store yet, and others may be making it: waits for them.
bool TableDataset::take_in_turn(FileLock& turn, Device& device) {
  auto written = [&] {
    std::error_code none;
    return std::filesystem::last_write_time(store_file_.path, none);
  };
  const auto before = written();
  if (always_writes_store(options_, store_file_)) {
    const bool waited = wait_for_turn(turn, options_, store_file_);
    if (written() != before && take_from_store(device)) return true;
    // Who had the turn has failed, and nobody shall wait for others to fail,
    // too; one that was killed need not fail again.
    if (waited && !turn.was_left()) turn.give_back();
  }
  check_store_dir(options_);
  return false;
}

void TableDataset::announce_scan(const ScanLimit& limit,
                                 const Spill& spill) const {
  const std::string text =
      "the initial scan may use " + limit.text() + "; " + spill.text();
  log(LogLevel::info, text);
  if (!options_.scanning) return;
  if (limit.expected_rows) {
    auto rows = static_cast<std::size_t>(*limit.expected_rows);
    bool more = std::ranges::any_of(options_.fields, [](const Field& field) {
      return field.kind->facts().stored.element_bytes > 0;
    });
    options_.scanning("~" + std::to_string(rows) + " rows of " +
                      std::to_string(layout_.row_bytes) + " bytes, ~" +
                      shown_bytes(rows * layout_.row_bytes) +
                      (more ? ", without the fields of varying length" : ""));
  }
  options_.scanning(text);
}

void TableDataset::bind() {
  for (const ColumnRequest& request : requests_of(options_.fields))
    parsing_.columns.push_back(request.column);
  parsing_.fields = bound_;
  for (const Field& field : options_.fields)
    parsing_.names.push_back(field.name);
  parsing_.by_column = !options_.split.by.empty();
  parsing_.drawing = options_.drawing;
  check_weights();
  parsing_.by_name = options_.split.by;
  parsing_.parts = source_->facts().parts;
  parsing_.canonical = options_.fingerprint.empty();
  parsing_.checks = options_.checks;
  if (one_side()) return;
  parsing_.side_of = [split = options_.split](std::string_view by) {
    return static_cast<std::uint8_t>(penstock::side_of(split, by));
  };
}

void TableDataset::check_weights() const {
  if (!options_.drawing || options_.drawing.balance) return;
  const ColumnType type = source_->types().back();
  if (type.kind == ColumnKind::number || type == ColumnType::boolean) return;
  throw Error(ErrorKind::request,
              {.code = "sampling.weights",
               .what = "cannot draw rows by their weights",
               .where = "loader.weights",
               .why = "column '" + options_.drawing.column + "' is " +
                      std::string(name_of(type)) + ", expected numbers",
               .next = "name a column of numbers; to draw each value of a "
                       "column equally often, use \"loader.balance\""});
}

RowEncoder TableDataset::encoder() const {
  return RowEncoder(bound_, options_.fields, layout_, fitted_->statistics,
                    source_.get());
}

void TableDataset::split(std::int64_t rows, std::span<const std::byte> sides) {
  sides_ = index_sides(options_.split, rows, sides);
}

bool TableDataset::needs_no_values() const {
  return options_.cache == "none" && options_.statistics &&
         std::ranges::all_of(options_.fields, [](const Field& field) {
           return field.kind->facts().stored.element_bytes == 0;
         });
}

/// A bin holds no more, however long the longest sample is.
std::int32_t TableDataset::longest_in_batch(std::size_t field,
                                            std::int32_t longest) const {
  const auto& packing = options_.fields[field].kind->facts().packing;
  return packing ? packing->size : longest;
}

bool TableDataset::find_device_fields(const Device& device, Runs runs) {
  facts_.device_fields = {};
  if (options_.batches_on_host) return true;
  facts_.device_fields =
      device_fields(options_.fields, device.memory_kind(), runs);
  for (auto [of, longest] : longest_runs_) {
    for (std::vector<DeviceField>& side : facts_.device_fields)
      for (DeviceField& field : side)
        if (field.field == of && field.element_bytes > 0)
          field.longest_run = longest;
  }
  return false;
}

void TableDataset::plan_tier(std::int64_t rows, const Device& device,
                             const std::optional<ScanMemory>& scan) {
  facts_.rows = rows;
  facts_.on_side = sides_.sizes();
  facts_.longest.clear();
  const bool batches_on_host = find_device_fields(device, Runs::kept);
  for (auto [f, longest] : longest_runs_)
    for (const Output& output : options_.fields[f].kind->facts().outputs)
      if (output.own_lengths())
        facts_.longest.push_back(longest_in_batch(f, longest));
  const HostLimits host = rank_limits(options_.cache, options_);
  auto rings = [&](const DatasetFacts& facts) {
    return options_.ring_bytes ? options_.ring_bytes(facts) : RingBytes();
  };
  const RingBytes copied = rings(facts_), kept = rings(kept_on_device(facts_));
  const RingBytes mixed = rings(kept_in_part(facts_, layout_.row_bytes));
  TierLimits limits = tier_limits(host, device);
  limits.disk_free = disk_free(host);
  limits.disk_origin = store_dir(options_).string();
  request_ = {.rows = rows,
              .row_bytes = layout_.row_bytes,
              .run_bytes = run_bytes_,
              .finished_on_host =
                  batches_on_host ||
                  !finished_on_device(options_.fields, facts_.device_fields),
              .ring_device_bytes = kept.device,
              .ring_staged_bytes = copied.device - kept.device,
              .ring_host_bytes = copied.host,
              .ring_mixed_bytes = mixed.device - kept.device,
              .ring_mixed_host_bytes = mixed.host,
              .finishing_bytes = finishing_of_all(),
              .tier = options_.cache,
              .budgets = options_.budgets,
              .divisible = longest_runs_.empty() && layout_.row_bytes > 0,
              .batch_rows = options_.batch_rows,
              .on_disk = rows_in_store(),
              .beside_rows = key_bytes_ +
                             static_cast<std::size_t>(rows) *
                                 (sizeof(std::uint8_t) +  // its side
                                  head_bytes() +
                                  sizeof(std::int32_t) * longest_runs_.size())};
  TierPlan plan = plan_tiers(request_, limits);
  plan.scan = scan;
  use_plan(std::move(plan), device);
  keep_larger();
  if (options_.planned) options_.planned(facts_.plan);
}

void TableDataset::use_plan(TierPlan plan, const Device& device) {
  const bool kept = plan.tier != Tier::none;
  find_device_fields(device, kept ? Runs::kept : Runs::measured);
  facts_.plan = std::move(plan);
  facts_.plan.notes = finish_notes(
      options_.fields, facts_.device_fields,
      kept || device.memory_kind() == MemoryKind::cpu
          ? "host memory is the device's memory, or a batch operation runs on "
            "the device"
          : "the files are not kept; \"loader.cache\": \"ram\" keeps them");
  if (const std::string note = rank_note(options_); !note.empty())
    facts_.plan.notes.push_back(note);
  if (finishing_bytes_ > 0)
    facts_.plan.notes.push_back(
        finishing_note(finishing_of_all(), std::max(1, options_.workers)));
  if (facts_.plan.tier == Tier::none)
    facts_.most_readers = most_readers(*source_);
  if (gathered_on_device(facts_.plan.tier))
    facts_ = kept_on_device(std::move(facts_));
  if (facts_.plan.mixed())
    facts_ = kept_in_part(std::move(facts_), layout_.row_bytes);
}

/// Another program may have taken memory since the plan was made.
bool TableDataset::plans_again(const Error& error, const Device& device) {
  if (error.kind() != ErrorKind::out_of_memory || options_.cache != "auto" ||
      plans_left_-- == 0)
    return false;
  log(LogLevel::warning,
      std::string("the place of the rows is planned again: ") + error.what());
  const std::optional<ScanMemory> scan = plan().scan;
  plan_tier(facts_.rows, device, scan);
  return true;
}

void TableDataset::pack(const RowsById& rows, Device& device,
                        const ShareOut& share_out) {
  runs_.clear();
  damaged_.clear();
  const bool kept =
      plan().tier != Tier::none && (plan().tier != Tier::disk || !runs_alone());
  for (const Field& field : options_.fields) {
    std::size_t element = field.kind->facts().stored.element_bytes;
    runs_.push_back(element == 0 ? nullptr
                                 : std::make_shared<RunTable>(element, kept));
  }
  if (plan().tier == Tier::disk) {
    take_keys(rows);
    std::shared_ptr<const Store> store = pack_to_store(rows, share_out);
    if (plan().places.size() > 1) copy_to_tiers(store, device);
    return find_lengths();
  }
  try {
    if (plan().first_in(Tier::none) > 0 && layout_.row_bytes > 0)
      table_ =
          std::make_unique<Table>(plan().places, layout_.row_bytes, device);
  } catch (const Error& error) {
    runs_.clear();  // no row is in a store
    if (!plans_again(error, device)) throw;
    return pack(rows, device, share_out);
  }
  const bool runs = std::ranges::any_of(
      runs_, [](const auto& table) { return table != nullptr; });
  if (table_ == nullptr && !runs)  // the fields have been fitted
    for (ParsedBlock& block : rows.blocks) block.fields.clear();
  take_keys(rows);
  const bool all = table_ && plan().tier != Tier::none;
  if (runs || (table_ && (!all || !table_->on_host() || arrived_by_id(rows))))
    pack_by_id(rows, share_out);
  else if (table_)
    damaged_ = pack_in_arrival_order(
        rows, layout_.row_bytes, [this] { return encoder(); }, *table_,
        share_out);
  if (table_) table_->seal();
  move_runs(device);
  find_lengths();
}

void TableDataset::move_runs(Device& device) {
  if (plan().tier != Tier::device || device.memory_kind() == MemoryKind::cpu)
    return;
  heads_.assign(runs_.size(), nullptr);
  for (std::size_t f = 0; f < runs_.size(); ++f) {
    if (runs_[f] == nullptr) continue;
    const StoredForm& form = options_.fields[f].kind->facts().stored;
    if (form.head_bytes > 0) {
      heads_[f] = std::make_shared<RunTable>(form.element_bytes, true);
      for (std::int64_t row = 0; row < runs_[f]->rows(); ++row) {
        const std::span<const std::byte> run = runs_[f]->row(row);
        heads_[f]->append(run.first(form.seen_of(run.size())));
      }
    }
    runs_[f]->move_to(device);
  }
}

/// Of a row, beside its run: what of it the host sees, and how long that is.
std::size_t TableDataset::head_bytes() const {
  std::size_t all = 0;
  for (const Field& field : options_.fields)
    if (const std::size_t bytes = field.kind->facts().stored.head_bytes)
      all += bytes + sizeof(std::int32_t);
  return all;
}

void TableDataset::take_keys(const RowsById& rows) {
  const SampleId first_missing = plan().first_in(Tier::none);
  std::vector<std::uint64_t> hashes;
  hashes.reserve(static_cast<std::size_t>(rows.count() - first_missing));
  KeyList keys(rows.block(0).keys.type());
  keys.reserve(rows.count());
  Sha256 fingerprint;  // of the hashes of runs of rows: it is one thread's
  std::vector<std::uint64_t> run;
  auto end_run = [&] {
    std::uint64_t hash = hash64(std::as_bytes(std::span(run)));
    fingerprint.add(std::as_bytes(std::span(&hash, 1)));
    run.clear();
  };
  for (SampleId id = 0; id < rows.count(); ++id) {
    const ParsedBlock& block = rows.block(id);
    std::uint64_t hash = block.hashes[rows.ref(id).row];
    keys.append(block.keys, rows.ref(id).row);
    run.push_back(hash);
    if (run.size() == kFingerprintRun) end_run();
    if (id >= first_missing) hashes.push_back(hash);
  }
  if (!run.empty()) end_run();
  keys_ = std::make_shared<const TableKeys>(std::move(keys));
  row_hashes_ =
      std::make_shared<const std::vector<std::uint64_t>>(std::move(hashes));
  fingerprint_ =
      options_.fingerprint.empty() ? fingerprint.hex() : options_.fingerprint;
}

// A block is freed when its last row is packed, so that parsed and packed rows
// are never held twice when rows arrive in order of their keys.
void TableDataset::pack_by_id(const RowsById& rows, const ShareOut& share_out,
                              StoreWriter* store) {
  constexpr std::size_t kUnkeptBytes = std::size_t{4} << 20;
  const auto unkept_rows = static_cast<std::int64_t>(std::clamp<std::size_t>(
      kUnkeptBytes / std::max<std::size_t>(layout_.row_bytes, 1), 1, 16384));
  // Threads are made for each piece: fewer, as long as the values of its rows,
  // which are freed behind it, are few.
  constexpr std::size_t kAtOnceBytes = std::size_t{16} << 20;
  const auto rows_at_once = static_cast<std::int64_t>(
      kAtOnceBytes / std::max<std::size_t>(layout_.row_bytes, 1));
  std::vector<std::byte> unkept;
  std::vector<std::int64_t> left(rows.blocks.size());
  for (RowRef ref : rows.refs) ++left[ref.block];
  const bool runs = std::ranges::any_of(
      runs_, [](const auto& table) { return table != nullptr; });
  const SampleId all = table_ ? plan().first_in(Tier::none) : rows.count();
  for (SampleId first = 0, end = 0; first < all; first = end) {
    std::int64_t most = table_ ? table_->most_rows() : unkept_rows;
    if (table_ && table_->on_host()) most = std::max(most, rows_at_once);
    if (runs) most = std::min<std::int64_t>(most, 1024);  // they count to 4 GiB
    end_if_stopped(options_.stop);
    end = std::min(all, first + most);
    const std::int64_t count = end - first;
    if (table_ == nullptr)
      unkept.resize(static_cast<std::size_t>(count) * layout_.row_bytes);
    encode(rows, first, end, table_ ? table_->append(count) : unkept.data(),
           share_out, store);
    if (store != nullptr && layout_.row_bytes > 0) store->append(unkept);
    for (SampleId id = first; id < end; ++id)
      if (--left[rows.ref(id).block] == 0) rows.block(id) = ParsedBlock();
  }
}

/// For what encoded runs take, which is about what parsed ones do.
void TableDataset::make_room(const RowsById& rows, SampleId first, SampleId end,
                             std::vector<Values>& runs) const {
  for (std::size_t f = 0; f < runs.size(); ++f) {
    if (runs_[f] == nullptr) continue;
    std::size_t bytes = 0;
    for (SampleId id = first; id < end; ++id)
      bytes += options_.fields[f].kind->stored_run(rows.row(id, f));
    runs[f].bytes.resize(bytes);
    runs[f].bytes.clear();
  }
}

// Threads encode ranges of rows; their runs are put together in order of id.
void TableDataset::encode(const RowsById& rows, SampleId first, SampleId end,
                          std::byte* out, const ShareOut& share_out,
                          StoreWriter* store) {
  Mutex mutex;
  std::map<std::int64_t, std::vector<Values>> runs;  // by their first row
  share_out(end - first, [&](std::int64_t from, std::int64_t to) {
    std::vector<Values> made(options_.fields.size());
    make_room(rows, first + from, first + to, made);
    Faults damaged;
    encoder().encode(rows, first + from, first + to,
                     out + static_cast<std::size_t>(from) * layout_.row_bytes,
                     made, &damaged);
    Lock lock(mutex);
    runs.emplace(from, std::move(made));
    for (RowFault& fault : damaged.rows)
      damaged_.emplace(first + from + fault.row, std::move(fault));
  });
  for (const auto& [from, made] : runs)
    for (std::size_t f = 0; f < made.size(); ++f) {
      if (runs_[f] == nullptr) continue;
      if (store != nullptr && runs_alone()) store->append(made[f].bytes.span());
      for (std::int64_t r = 0; r < made[f].rows(); ++r)
        runs_[f]->append(made[f].row(r));
    }
}

void TableDataset::find_lengths() {
  facts_.longest.clear();
  for (std::size_t f = 0; f < options_.fields.size(); ++f)
    for (const Output& output : options_.fields[f].kind->facts().outputs) {
      if (!output.own_lengths()) continue;
      PENSTOCK_ASSERT(runs_[f] != nullptr, "what differs in length has a run");
      varying_.push_back(f);
      facts_.longest.push_back(longest_in_batch(f, runs_[f]->longest()));
    }
  facts_.runs.assign(runs_.begin(), runs_.end());
}

void TableDataset::lengths(std::size_t varying,
                           std::span<const SampleRange> ranges,
                           std::span<std::int32_t> out) const {
  if (varying == varying_.size() + kStoredRows) {
    const SampleId first = plan().first_in(Tier::ram);
    for (std::size_t i = 0; i < ranges.size(); ++i)
      out[i] = ranges[i].sample >= first ? 1 : 0;
    return;
  }
  const bool whole = varying >= varying_.size();
  const RunTable& runs =
      *runs_[whole ? varying - varying_.size() : varying_[varying]];
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    SampleId id = ranges[i].sample;
    out[i] = id < 0  ? 0
             : whole ? runs.length(id)
                     : elements_in(ranges[i], runs.length(id));
  }
}

std::optional<std::size_t> TableDataset::staged_place(Side side) const {
  const std::vector<DeviceField>& fields = facts_.device_fields_of(side);
  if (fields.empty() || fields.back().field != kStoredRows) return std::nullopt;
  return facts_.outputs.size() + kStagedPlaces * (fields.size() - 1) + 1;
}

void TableDataset::select(Side side, std::span<SampleId> ranks) const {
  this->side(side).select(ranks);
}

std::unique_ptr<ReadAhead> TableDataset::open_read_ahead(
    ReadAhead::Options options) const {
  if (plan().tier != Tier::none) return nullptr;
  options.first = plan().first_in(Tier::none);
  return std::make_unique<SourceReadAhead>(*source_, &keys(),
                                           std::move(options));
}

}  // namespace penstock
