#include "penstock/dataset/table/row_packing.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "penstock/dataset/bad_row_json.h"
#include "penstock/dataset/opened_source.h"
#include "penstock/dataset/table/arrival_packing.h"

// Memory decides the order of packing. Where rows arrive in order of their keys
// they are packed by id, and a parsed block is freed after its last row; else
// arrival_packing.cpp packs them as they came. Statistics and the fingerprint
// are computed in order of id, so that no thread, block size or source changes
// a bit of them.

namespace penstock {
namespace {

constexpr std::size_t kFingerprintRun = 1024;  // rows

template <class T>
void add(StoreWriter& writer, const std::string& array,
         const std::vector<T>& values) {
  writer.begin(array);
  writer.append(std::as_bytes(std::span(values)));
}

Json about_rows(const TableOrigin& origin, const ScannedTable& scanned,
                const TableStore& file, const DamagedRows& damaged) {
  const FoundRows& found = scanned.found;
  Json about;
  about["recipe"] = file.recipe;
  about["source"] = origin.source->shown();
  about["opened"] = opened_json(origin.options, *origin.source);
  about["rows"] = scanned.rows.count();
  about["fingerprint"] = found.fingerprint;
  about["statistics"] = Json(Json::Object{});
  for (std::size_t f = 0; f < found.statistics.size(); ++f)
    about["statistics"][origin.options.fields[f].name] = found.statistics[f];
  about["too_short"] = found.scan.too_short;
  about["bad_rows"] = found.scan.bad_rows;
  about["quarantine"] = Json(Json::Array{});
  for (const BadRow& bad : found.scan.quarantine)
    about["quarantine"].push_back(json_of(bad));
  about["damaged"] = json_of(damaged);
  return about;
}

}  // namespace

RowPacking::RowPacking(const TableOrigin& origin, ScannedTable& scanned,
                       const ShareOut& share_out, bool keeps_runs)
    : origin_(origin),
      scanned_(scanned),
      rows_(scanned.rows),
      share_out_(share_out) {
  for (std::size_t f = 0; f < origin.options.fields.size(); ++f) {
    const std::size_t element = origin.element_bytes[f];
    runs_.push_back(element == 0
                        ? nullptr
                        : std::make_shared<RunTable>(element, keeps_runs));
  }
}

bool RowPacking::has_runs() const {
  return std::ranges::any_of(
      runs_, [](const auto& table) { return table != nullptr; });
}

RowPacking::RowHashes RowPacking::find_keys(SampleId first) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(static_cast<std::size_t>(rows_.count() - first));
  KeyList keys(rows_.block(0).keys.type());
  keys.reserve(rows_.count());
  Sha256 fingerprint;  // of the hashes of runs of rows: it is one thread's
  std::vector<std::uint64_t> run;
  auto end_run = [&] {
    std::uint64_t hash = hash64(std::as_bytes(std::span(run)));
    fingerprint.add(std::as_bytes(std::span(&hash, 1)));
    run.clear();
  };
  for (SampleId id = 0; id < rows_.count(); ++id) {
    const ParsedBlock& block = rows_.block(id);
    const std::size_t row = rows_.ref(id).row;
    keys.append(block.keys, static_cast<std::int64_t>(row));
    run.push_back(block.hashes[row]);
    if (run.size() == kFingerprintRun) end_run();
    if (id >= first) hashes.push_back(block.hashes[row]);
  }
  if (!run.empty()) end_run();
  scanned_.found.keys = std::make_shared<const TableKeys>(std::move(keys));
  const std::string& named = origin_.options.fingerprint;
  scanned_.found.fingerprint = named.empty() ? fingerprint.hex() : named;
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(hashes));
}

void RowPacking::pack(Table* table, const TierPlan& plan) {
  if (table == nullptr && !has_runs())  // the fields have been fitted
    for (ParsedBlock& block : rows_.blocks) block.fields.clear();
  const bool all = table != nullptr && plan.tier != Tier::none;
  if (has_runs() ||
      (table != nullptr && (!all || !table->on_host() || arrived_by_id(rows_))))
    pack_by_id(table != nullptr ? plan.first_in(Tier::none) : rows_.count(),
               table, nullptr);
  else if (table != nullptr)
    damaged_ = pack_in_arrival_order(
        rows_, origin_.layout.row_bytes,
        [this] { return origin_.encoder(scanned_.found.statistics); }, *table,
        share_out_);
  if (table != nullptr) table->seal();
}

void RowPacking::pack(StoreWriter& store) {
  begin_rows(store, origin_.runs_alone);
  pack_by_id(rows_.count(), nullptr, &store);
}

void RowPacking::take(std::shared_ptr<RunTable> lengths) {
  // Refuses statistics of another field.
  origin_.encoder(scanned_.found.statistics);
  runs_[0] = std::move(lengths);
  for (ParsedBlock& block : rows_.blocks) block = ParsedBlock();
}

void RowPacking::pack_by_id(SampleId all, Table* table, StoreWriter* store) {
  const std::size_t row_bytes = origin_.layout.row_bytes;
  const std::size_t least = std::max<std::size_t>(row_bytes, 1);
  constexpr std::size_t kUnkeptBytes = std::size_t{4} << 20;
  const auto unkept_rows = static_cast<std::int64_t>(
      std::clamp<std::size_t>(kUnkeptBytes / least, 1, 16384));
  // Threads are made for each piece: fewer, as long as the values of its rows,
  // which are freed behind it, are few.
  constexpr std::size_t kAtOnceBytes = std::size_t{16} << 20;
  const auto rows_at_once = static_cast<std::int64_t>(kAtOnceBytes / least);
  std::vector<std::byte> unkept;
  std::vector<std::int64_t> left(rows_.blocks.size());
  for (RowRef ref : rows_.refs) ++left[ref.block];
  for (SampleId first = 0, end = 0; first < all; first = end) {
    std::int64_t most = table != nullptr ? table->most_rows() : unkept_rows;
    if (table != nullptr && table->on_host())
      most = std::max(most, rows_at_once);
    // They count to 4 GiB.
    if (has_runs()) most = std::min<std::int64_t>(most, 1024);
    end_if_stopped(origin_.options.stop);
    end = std::min(all, first + most);
    const std::int64_t count = end - first;
    if (table == nullptr)
      unkept.resize(static_cast<std::size_t>(count) * row_bytes);
    encode(first, end, table != nullptr ? table->append(count) : unkept.data(),
           store);
    if (store != nullptr && row_bytes > 0) store->append(unkept);
    for (SampleId id = first; id < end; ++id)
      if (--left[rows_.ref(id).block] == 0) rows_.block(id) = ParsedBlock();
  }
}

/// For what encoded runs take, which is about what parsed ones do.
void RowPacking::make_room(SampleId first, SampleId end,
                           std::vector<Values>& runs) const {
  for (std::size_t f = 0; f < runs.size(); ++f) {
    if (runs_[f] == nullptr) continue;
    std::size_t bytes = 0;
    for (SampleId id = first; id < end; ++id)
      bytes += origin_.options.fields[f].kind->stored_run(rows_.row(id, f));
    runs[f].bytes.resize(bytes);
    runs[f].bytes.clear();
  }
}

// Threads encode ranges of rows; their runs are put together in order of id.
void RowPacking::encode(SampleId first, SampleId end, std::byte* out,
                        StoreWriter* store) {
  Mutex mutex;
  std::map<std::int64_t, std::vector<Values>> runs;  // by their first row
  share_out_(end - first, [&](std::int64_t from, std::int64_t to) {
    std::vector<Values> made(runs_.size());
    make_room(first + from, first + to, made);
    Faults damaged;
    origin_.encoder(scanned_.found.statistics)
        .encode(rows_, first + from, first + to,
                out + static_cast<std::size_t>(from) * origin_.layout.row_bytes,
                made, &damaged);
    Lock lock(mutex);
    runs.emplace(from, std::move(made));
    for (RowFault& fault : damaged.rows)
      damaged_.emplace(first + from + fault.row, std::move(fault));
  });
  for (const auto& [from, made] : runs)
    for (std::size_t f = 0; f < made.size(); ++f) {
      if (runs_[f] == nullptr) continue;
      if (store != nullptr && origin_.runs_alone)
        store->append(made[f].bytes.span());
      for (std::int64_t r = 0; r < made[f].rows(); ++r)
        runs_[f]->append(made[f].row(r));
    }
}

std::shared_ptr<const Store> write_store(const TableOrigin& origin,
                                         ScannedTable& scanned,
                                         const TableStore& file,
                                         const ShareOut& share_out,
                                         DamagedRows& damaged) {
  const TableDatasetOptions& options = origin.options;
  RowPacking packing(origin, scanned, share_out, !origin.runs_alone);
  packing.find_keys(scanned.rows.count());
  // Packing frees them.
  const std::vector<std::byte> sides = sides_of(scanned.rows);
  std::vector<std::uint64_t> draws;
  if (options.drawing) draws = draws_in(scanned.rows);
  log(LogLevel::info, "writing " + file.path.string());
  std::error_code none;
  if (!options.remake)
    std::filesystem::remove(file.path, none);  // it could not be used
  std::optional<StoreWriter> whole;
  if (scanned.begun == nullptr) {
    real_files().make_folders(file.path.parent_path(), Readers::owner);
    packing.pack(whole.emplace(real_files(), file.path));
  } else {
    packing.take(scanned.begun->lengths());
  }
  StoreWriter& writer = whole ? *whole : scanned.begun->writer();
  for (std::size_t f = 0; f < packing.runs().size(); ++f) {
    const RunTable* runs = packing.runs()[f].get();
    if (runs == nullptr) continue;
    writer.begin("lengths/" + std::to_string(f));
    writer.append(std::as_bytes(runs->lengths()));
    if (origin.runs_alone) continue;
    writer.begin("runs/" + std::to_string(f));
    writer.append(runs->all());
  }
  const KeyList& keys = scanned.found.keys->list();
  writer.begin("keys");
  writer.append(std::as_bytes(keys.numbers()));
  writer.begin("key_bytes");
  writer.append(std::as_bytes(std::span(keys.characters())));
  add(writer, "sides", sides);
  if (options.drawing) add(writer, "draws", draws);
  if (!scanned.named_files.empty()) {
    writer.begin("files");
    writer.append(bytes_of(scanned.named_files).span());
  }
  damaged = packing.damaged();
  writer.seal(about_rows(origin, scanned, file, damaged));
  scanned.begun.reset();
  return std::make_shared<const Store>(real_files(), file.path);
}

}  // namespace penstock
