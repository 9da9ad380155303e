#include "penstock/dataset/table/scan_parts.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/folder.h"
#include "penstock/base/temporary.h"
#include "penstock/dataset/bad_row_json.h"

// A part is a file in the format of stores. Its array "values" has the values
// of each block, field after field, in the order in which they were parsed, so
// that they are written as they come; "rows" in the document says how many rows
// each block has. The other arrays hold what all its rows have, one after the
// other: "keys", "hashes", "sides", "draws", and of field f "ends/f" and
// "notes/f". Keys of rows that are left out are not kept: positions are never
// there twice.

namespace penstock {
namespace {

/// Numbers are read in place.
constexpr std::size_t kPartAlign = sizeof(double);
constexpr std::byte kZeros[kPartAlign] = {};

std::size_t padding_of(std::size_t size) {
  return (kPartAlign - size % kPartAlign) % kPartAlign;
}

template <class Number>
void append(Bytes& to, std::span<const Number> numbers) {
  to.append(numbers.data(), numbers.size_bytes());
}

void write(StoreWriter& writer, std::string name, const Bytes& bytes) {
  writer.begin(std::move(name));
  writer.append(bytes.span());
}

/// Numbers of an array of a store, taken piece by piece.
template <class Number>
class Pieces {
 public:
  explicit Pieces(std::span<const std::byte> bytes) : left_(bytes) {}
  std::vector<Number> take(std::size_t count) {
    std::vector<Number> numbers;
    if (left_.empty()) return numbers;
    numbers.resize(count);
    std::memcpy(numbers.data(), left_.data(), count * sizeof(Number));
    left_ = left_.subspan(count * sizeof(Number));
    return numbers;
  }

 private:
  std::span<const std::byte> left_;
};

std::string numbered(const char* name, std::size_t field) {
  return name + ("/" + std::to_string(field));
}

}  // namespace

int ScanParts::partitions(std::int64_t rows) {
  constexpr std::int64_t kFew = 1024, kMany = 16384, kEnough = 64;
  constexpr std::int64_t kMost = 65536;
  const std::int64_t each = std::clamp(rows / kEnough, kFew, kMany);
  return static_cast<int>(
      std::clamp<std::int64_t>((rows + each - 1) / each, 1, kMost));
}

std::filesystem::path ScanParts::folder_of(const std::filesystem::path& store) {
  std::filesystem::path folder = store;
  folder += ".parts";
  return folder;
}

ScanParts::ScanParts(FileSystem& files, std::filesystem::path folder,
                     BoundFields fields)
    : files_(files), folder_(std::move(folder)), fields_(std::move(fields)) {}

std::filesystem::path ScanParts::file_of(const std::filesystem::path& folder,
                                         const Partition& partition) {
  return folder / (std::to_string(partition.first) + "-" +
                   std::to_string(partition.end) + ".part");
}

Json ScanParts::about(const Partition& partition,
                      const std::vector<ParsedBlock>& blocks,
                      const ParseNotes& notes) const {
  Json about;
  about["partition"] = partition.range;
  about["rows"] = Json(Json::Array{});
  for (const ParsedBlock& block : blocks) about["rows"].push_back(block.rows());
  about["widths"] = Json(Json::Array{});
  for (std::size_t f = 0; f < fields_.size(); ++f)
    about["widths"].push_back(
        blocks.empty() ? std::int64_t{0}
                       : static_cast<std::int64_t>(blocks[0].fields[f].width));
  about["too_short"] = notes.too_short;
  about["bad_rows"] = notes.bad_rows;
  about["bad"] = Json(Json::Array{});
  for (const BadRow& bad : notes.bad) about["bad"].push_back(json_of(bad));
  return about;
}

ScanParts::Writer::Writer(const ScanParts& parts, const Partition& partition)
    : parts_(parts), partition_(partition) {
  parts.files_.make_folders(parts.folder_, Readers::owner);
  const std::filesystem::path file = parts.file_of(partition);
  remove_leftovers(file);
  writer_ = std::make_unique<StoreWriter>(parts.files_, file);
  writer_->begin("values");
}

void ScanParts::Writer::add(ParsedBlock block) {
  if (block.rows() == 0) return;
  for (Values& values : block.fields) {
    writer_->append(values.bytes.span());
    const std::size_t padding = padding_of(values.bytes.size());
    writer_->append(std::span(kZeros).first(padding));
    size_ += values.bytes.size() + padding;
    values.bytes = Bytes();
  }
  blocks_.push_back(std::move(block));
}

ScannedPart ScanParts::Writer::seal(ParseNotes notes) {
  Bytes keys, hashes, sides, draws;
  std::vector<Bytes> ends(parts_.fields_.size());
  for (const ParsedBlock& block : blocks_) {
    append(keys, block.keys.numbers());
    append(hashes, std::span<const std::uint64_t>(block.hashes));
    append(sides, std::span<const std::uint8_t>(block.sides));
    append(draws, std::span<const std::uint64_t>(block.draws));
    for (std::size_t f = 0; f < ends.size(); ++f)
      append(ends[f], std::span<const std::uint32_t>(block.fields[f].ends));
  }
  write(*writer_, "keys", keys);
  write(*writer_, "hashes", hashes);
  write(*writer_, "sides", sides);
  write(*writer_, "draws", draws);
  for (std::size_t f = 0; f < ends.size(); ++f)
    write(*writer_, numbered("ends", f), ends[f]);
  for (std::size_t f = 0; f < notes.fields.size(); ++f) {
    if (notes.fields[f] == nullptr) continue;
    write(*writer_, numbered("notes", f), notes.fields[f]->saved());
  }
  // One that a power failure has damaged is made again.
  writer_->seal(parts_.about(partition_, blocks_, notes), Lasting::later);
  writer_.reset();
  auto store =
      std::make_shared<const Store>(parts_.files_, parts_.file_of(partition_));
  return {parts_.blocks_in(store), std::move(notes)};
}

std::optional<ParseNotes> ScanParts::notes_in(const Store& store) const {
  ParseNotes notes;
  const Json& about = store.about();
  notes.too_short = about.find("too_short")->integer();
  notes.bad_rows = about.find("bad_rows")->integer();
  for (const Json& bad : about.find("bad")->array())
    notes.bad.push_back(bad_row_of(bad));
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    notes.fields.emplace_back();
    if (!store.has(numbered("notes", f))) continue;
    notes.fields.back() =
        fields_[f]->notes_of(store.checked(numbered("notes", f)));
    if (notes.fields.back() == nullptr) return std::nullopt;
  }
  return notes;
}

std::vector<ParsedBlock> ScanParts::blocks_in(
    const std::shared_ptr<const Store>& store) const {
  std::span<const std::byte> values = store->array("values");
  Pieces<std::int64_t> keys(store->checked("keys"));
  Pieces<std::uint64_t> hashes(store->checked("hashes"));
  Pieces<std::uint8_t> sides(store->checked("sides"));
  Pieces<std::uint64_t> draws(store->checked("draws"));
  std::vector<Pieces<std::uint32_t>> ends;
  for (std::size_t f = 0; f < fields_.size(); ++f)
    ends.emplace_back(store->checked(numbered("ends", f)));
  const Json::Array& widths = store->about().find("widths")->array();
  std::vector<ParsedBlock> blocks;
  for (const Json& count : store->about().find("rows")->array()) {
    const auto rows = static_cast<std::size_t>(count.integer());
    ParsedBlock& block = blocks.emplace_back();
    block.keys = KeyList::from(ColumnType::int64, keys.take(rows), {});
    block.hashes = hashes.take(rows);
    block.sides = sides.take(rows);
    block.draws = draws.take(rows);
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      Values& of = block.fields.emplace_back();
      of.width = static_cast<std::size_t>(widths[f].integer());
      if (of.width == 0) of.ends = ends[f].take(rows);
      const std::size_t bytes = of.width != 0     ? of.width * rows
                                : of.ends.empty() ? 0
                                                  : of.ends.back();
      of.bytes = Bytes::borrow(values.first(bytes), store);
      values = values.subspan(bytes + padding_of(bytes));
    }
  }
  return blocks;
}

std::optional<ScannedPart> ScanParts::find(const Partition& partition) const {
  const std::filesystem::path file = file_of(partition);
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown)) return std::nullopt;
  try {
    auto store = std::make_shared<const Store>(files_, file);
    store->checked("values");
    std::optional<ParseNotes> notes = notes_in(*store);
    if (!notes) return std::nullopt;
    return ScannedPart{blocks_in(store), std::move(*notes)};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::source) throw;
    log(LogLevel::warning,
        std::string("rows are parsed again: ") + error.what());
    return std::nullopt;
  }
}

void ScanParts::remove() const { remove_tree(folder_); }

}  // namespace penstock
