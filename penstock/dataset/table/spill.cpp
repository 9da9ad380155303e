#include "penstock/dataset/table/spill.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/held_memory.h"
#include "penstock/cache/cache.h"
#include "penstock/dataset/table/key_order.h"

// A run, the rows of some blocks by ascending key, is one file: the values of
// its first field, row after row, then those of the second. Everything else of
// a row (key, side, hash, and where its values end if they differ in length)
// stays in memory.

namespace penstock {
namespace {

/// Values of all rows are written through this much memory.
constexpr std::size_t kPiece = std::size_t{1} << 20;
/// Numbers are read in place.
constexpr std::size_t kAlign = sizeof(double);

/// Where a field's values are in the file.
struct Extent {
  std::size_t begin = 0, bytes = 0;
};

/// Writes pieces of memory that are filled run by run.
class PieceWriter {
 public:
  explicit PieceWriter(ScratchFile& file) : file_(file) {
    piece_.reserve(kPiece);
  }
  std::size_t size() const { return written_ + piece_.size(); }
  void append(std::span<const std::byte> bytes) {
    if (piece_.size() + bytes.size() > kPiece) flush();
    if (bytes.size() > kPiece) {
      file_.append(bytes);
      written_ += bytes.size();
      return;
    }
    piece_.insert(piece_.end(), bytes.begin(), bytes.end());
  }
  void align() {
    piece_.resize(piece_.size() + (kAlign - size() % kAlign) % kAlign);
  }
  void flush() {
    if (!piece_.empty()) file_.append(piece_);
    written_ += piece_.size();
    piece_.clear();
  }

 private:
  ScratchFile& file_;
  std::vector<std::byte> piece_;
  std::size_t written_ = 0;
};

/// The values of one field, without their bytes, which are written.
Values write_field(const std::vector<ParsedBlock>& blocks, std::size_t field,
                   const std::vector<RowRef>& order, PieceWriter& writer,
                   Extent& extent) {
  Values values;
  for (const ParsedBlock& block : blocks)
    if (block.rows() > 0) values.width = block.fields[field].width;
  writer.align();
  extent.begin = writer.size();
  if (values.width == 0) values.ends.reserve(order.size());
  for (RowRef ref : order) {
    writer.append(blocks[ref.block].fields[field].row(ref.row));
    if (values.width == 0)
      values.ends.push_back(
          static_cast<std::uint32_t>(writer.size() - extent.begin));
  }
  extent.bytes = writer.size() - extent.begin;
  return values;
}

}  // namespace

Spill::Spill(FileSystem& files, std::filesystem::path folder,
             std::string source)
    : files_(files),
      folder_(std::move(folder)),
      source_(std::move(source)),
      free_(free_bytes(folder_)),
      why_not_(why_not_a_disk(folder_)) {}

std::string Spill::text() const {
  if (!why_not_.empty()) return "no temporary files can be used: " + why_not_;
  return "further values go to temporary files in " + folder_.string() +
         (free_ ? " (" + shown_bytes(*free_) + " free)" : "");
}

ParsedBlock Spill::write(const std::vector<ParsedBlock>& blocks) {
  const std::vector<RowRef> order = rows_by_key(blocks, source_, 1);
  ParsedBlock run;
  run.keys = KeyList(blocks.front().keys.type());
  run.keys.reserve(static_cast<std::int64_t>(order.size()));
  run.hashes.reserve(order.size());
  for (RowRef ref : order) {
    const ParsedBlock& block = blocks[ref.block];
    run.keys.append(block.keys, ref.row);
    run.hashes.push_back(block.hashes[ref.row]);
    if (!block.sides.empty()) run.sides.push_back(block.sides[ref.row]);
    if (!block.draws.empty()) run.draws.push_back(block.draws[ref.row]);
  }
  files_.make_folders(folder_, Readers::owner);
  std::unique_ptr<ScratchFile> file = files_.scratch(folder_);
  PieceWriter writer(*file);
  std::vector<Extent> extents(blocks.front().fields.size());
  for (std::size_t f = 0; f < extents.size(); ++f)
    run.fields.push_back(write_field(blocks, f, order, writer, extents[f]));
  writer.flush();
  struct Mapped {
    std::unique_ptr<const FileMapping> file;
    MemoryCharge charge;
  };
  auto mapping = std::make_shared<Mapped>();
  mapping->file = file->map();
  mapping->charge = MemoryCharge(HeldFor::values, HeldIn::files, writer.size());
  for (std::size_t f = 0; f < extents.size(); ++f)
    run.fields[f].bytes = Bytes::borrow(
        mapping->file->bytes().subspan(extents[f].begin, extents[f].bytes),
        mapping);
  bytes_ += writer.size();
  return run;
}

}  // namespace penstock
