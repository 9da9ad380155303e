#include "penstock/sources/picked.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"

namespace penstock {
namespace {

using Positions = std::shared_ptr<const std::vector<std::int64_t>>;

SourceInfo info_of(const Source& source, const Positions& positions) {
  SourceInfo info = source.info();
  info.parts = nullptr;  // rows of one file need not follow each other
  info.identity = Json(Json::Object{});
  info.identity["kind"] = "picked";
  info.identity["source"] = source.identity();
  Sha256 hash;
  hash.add(std::as_bytes(std::span(*positions)));
  info.identity["rows"] = hash.hex();
  return info;
}

class PickedReader final : public Reader {
 public:
  PickedReader(std::unique_ptr<Reader> reader, Positions positions)
      : reader_(std::move(reader)), positions_(std::move(positions)) {}

  void read(const ReadRequest& request, Block& out) override {
    there_.clear();
    for (const std::int64_t row : request.positions)
      there_.push_back((*positions_)[static_cast<std::size_t>(row)]);
    ReadRequest inner(there_);
    inner.gone = request.gone;
    reader_->read(inner, out);
  }

 private:
  const std::unique_ptr<Reader> reader_;
  const Positions positions_;
  std::vector<std::int64_t> there_;
};

class Picked final : public Source {
 public:
  Picked(std::unique_ptr<Source> source, Positions positions)
      : Source(info_of(*source, positions)),
        source_(std::move(source)),
        positions_(std::move(positions)) {
    PENSTOCK_ASSERT(abilities().by_position && !abilities().by_key,
                    "rows are picked by their positions");
    const ChunkMap* chunks = source_->chunks();
    if (chunks == nullptr || positions_->empty()) return;
    // Rows of a chunk may be anywhere: these parts are as good as any others.
    constexpr std::int64_t kParts = 64;
    const std::int64_t rows = std::ssize(*positions_);
    for (std::int64_t part = 0; part < kParts; ++part) {
      const std::int64_t end =
          rows / kParts * (part + 1) + rows % kParts * (part + 1) / kParts;
      if (end > (chunks_.ends.empty() ? 0 : chunks_.ends.back()))
        chunks_.ends.push_back(end);
    }
    chunks_.chunk_ns = chunks->chunk_ns;
    chunks_.reader = chunks->reader;
  }

  std::string version_of_copy() const override {
    return source_->version_of_copy();
  }
  RowCount count() const override {
    return {.rows = std::ssize(*positions_), .exact = true};
  }
  const ChunkMap* chunks() const override {
    return chunks_.ends.empty() ? nullptr : &chunks_;
  }
  std::string place_of(std::int64_t position) const override {
    if (position < 0 || position >= std::ssize(*positions_)) return {};
    return source_->place_of((*positions_)[static_cast<std::size_t>(position)]);
  }
  std::unique_ptr<Reader> open_reader() override {
    return std::make_unique<PickedReader>(source_->open_reader(), positions_);
  }

 private:
  const std::unique_ptr<Source> source_;
  const Positions positions_;
  ChunkMap chunks_;
};

}  // namespace

std::unique_ptr<Source> picked(std::unique_ptr<Source> source,
                               Positions positions) {
  return std::make_unique<Picked>(std::move(source), std::move(positions));
}

}  // namespace penstock
