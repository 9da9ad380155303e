#include "penstock/dataset/table/store_remaker.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/dataset/indexed/sample_reader.h"
#include "penstock/dataset/table/parsed_rows.h"
#include "penstock/dataset/table/table_dataset.h"
#include "penstock/dataset/table/table_store.h"
#include "penstock/device/device.h"

namespace penstock {
namespace {

[[noreturn]] void refuse_other_rows(const Source& source) {
  throw Error(ErrorKind::source,
              {.code = "files.changed",
               .what = "cannot repair a damaged store",
               .where = source.shown(),
               .why = "the rows of the source are not those that were stored",
               .next = "start again: the rows are prepared again"});
}

std::span<const std::int32_t> lengths_of(const Store& store,
                                         std::size_t field) {
  const std::span<const std::byte> bytes =
      store.checked("lengths/" + std::to_string(field));
  return {reinterpret_cast<const std::int32_t*>(bytes.data()),
          bytes.size() / sizeof(std::int32_t)};
}

/// The part of `from`, whose first byte is number `first` of an array, that
/// fills `out` from byte `begin` of the array on.
void copy_part(std::span<const std::byte> from, std::size_t first,
               std::size_t begin, std::span<std::byte> out,
               const Source& source) {
  if (begin < first || begin - first + out.size() > from.size())
    refuse_other_rows(source);
  std::memcpy(out.data(), from.data() + (begin - first), out.size());
}

}  // namespace

/// Stored rows, and of each field its runs.
struct StoreRemaker::Rows {
  std::vector<std::byte> rows;
  std::vector<Values> runs;
};

StoreRemaker::StoreRemaker(TableDatasetOptions options,
                           std::shared_ptr<Source> source,
                           BlockParser::Options parsing, RowLayout layout)
    : options_(std::move(options)),
      source_(std::move(source)),
      parsing_(std::move(parsing)),
      layout_(std::move(layout)) {}

StoreRemaker::Rows StoreRemaker::encoded(const Store& store, std::int64_t first,
                                         std::int64_t end) const {
  const ColumnType key =
      source_->abilities().by_key ? source_->facts().key : ColumnType::int64;
  const KeyList all = keys_of(store, key);
  std::vector<SampleId> ids(static_cast<std::size_t>(end - first));
  std::iota(ids.begin(), ids.end(), first);
  KeyList keys(key);
  for (SampleId id : ids) keys.append(all, id);
  Block block;
  SampleReader(*source_, &all, nullptr).read(ids, block);
  ParseNotes notes;
  const ParsedBlock parsed = BlockParser(parsing_).parse(keys, block, notes);
  if (parsed.rows() != end - first) refuse_other_rows(*source_);
  RowEncoder encoder(parsing_.fields, options_.fields, layout_,
                     stored_statistics(store, options_.fields), source_.get());
  Rows made{.rows = std::vector<std::byte>(ids.size() * layout_.row_bytes),
            .runs = std::vector<Values>(options_.fields.size())};
  Faults damaged;
  encoder.encode(parsed, made.rows.data(), made.runs, &damaged);
  return made;
}

void StoreRemaker::copy_rows(const Store& store, std::size_t begin,
                             std::span<std::byte> out) const {
  const std::size_t bytes = layout_.row_bytes;
  const std::size_t first = begin / bytes;
  const std::size_t end = (begin + out.size() + bytes - 1) / bytes;
  const Rows made = encoded(store, static_cast<std::int64_t>(first),
                            static_cast<std::int64_t>(end));
  copy_part(made.rows, first * bytes, begin, out, *source_);
}

void StoreRemaker::copy_runs(const Store& store, std::size_t field,
                             std::size_t begin,
                             std::span<std::byte> out) const {
  const std::size_t element =
      options_.fields[field].kind->facts().stored.element_bytes;
  const std::span<const std::int32_t> lengths = lengths_of(store, field);
  std::size_t first = 0, first_byte = 0;
  auto bytes_of = [&](std::size_t row) {
    return static_cast<std::size_t>(lengths[row]) * element;
  };
  while (first < lengths.size() && first_byte + bytes_of(first) <= begin)
    first_byte += bytes_of(first++);
  std::size_t end = first;
  for (std::size_t at = first_byte;
       end < lengths.size() && at < begin + out.size(); ++end)
    at += bytes_of(end);
  const Rows made = encoded(store, static_cast<std::int64_t>(first),
                            static_cast<std::int64_t>(end));
  copy_part(made.runs[field].bytes.span(), first_byte, begin, out, *source_);
}

void StoreRemaker::remake(const Store& store, const std::string& array,
                          std::size_t begin, std::span<std::byte> out) const {
  constexpr std::string_view kRuns = "runs/";
  if (array == "rows") return copy_rows(store, begin, out);
  if (array.starts_with(kRuns))
    return copy_runs(store, std::stoul(array.substr(kRuns.size())), begin, out);
  rebuild(store.about().find("recipe")->find("statistics") != nullptr);
  const Store whole(real_files(), store.path());
  copy_part(whole.checked(array), 0, begin, out, *source_);
}

void StoreRemaker::rebuild(bool with_statistics) const {
  TableDatasetOptions again = options_;
  if (!with_statistics) again.statistics.reset();
  again.cache = "disk";
  again.budgets = {};
  again.anew = true;
  again.resumable = again.plan_only = false;
  again.open = nullptr;
  static_cast<RowsUse&>(again) = {};
  static_cast<PreparationListener&>(again) = {};
  const std::unique_ptr<Device> host = open_device({.kind = "cpu"});
  TableDataset::prepare(again, BoundSource{source_, parsing_.fields}, *host);
}

}  // namespace penstock
