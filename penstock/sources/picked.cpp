#include "penstock/sources/picked.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"

namespace penstock {
namespace {

using Positions = std::shared_ptr<const std::vector<std::int64_t>>;

/// Rows of a chunk may be anywhere: these parts are as good as any others.
std::shared_ptr<const ChunkMap> chunks_of(const Source& source,
                                          std::int64_t rows) {
  if (source.chunks() == nullptr || rows == 0) return nullptr;
  constexpr std::int64_t kParts = 64;
  auto chunks = std::make_shared<ChunkMap>();
  for (std::int64_t part = 0; part < kParts; ++part) {
    const std::int64_t end =
        rows / kParts * (part + 1) + rows % kParts * (part + 1) / kParts;
    if (end > (chunks->ends.empty() ? 0 : chunks->ends.back()))
      chunks->ends.push_back(end);
  }
  chunks->chunk_ns = source.chunks()->chunk_ns;
  chunks->reader = source.chunks()->reader;
  return chunks;
}

SourceFacts facts_of(const Source& source, const Positions& positions) {
  SourceFacts facts = source.facts();
  facts.parts = nullptr;  // rows of one file need not follow each other
  facts.chunks = chunks_of(source, std::ssize(*positions));
  facts.identity = Json(Json::Object{});
  facts.identity["kind"] = "picked";
  facts.identity["source"] = source.identity();
  Sha256 hash;
  hash.add(std::as_bytes(std::span(*positions)));
  facts.identity["rows"] = hash.hex();
  return facts;
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

// Invariant: positions_[i] is the row of `source_` that is row i here; they may
// repeat and come in any order. The source must be one by position, so that
// each of them stays the same row.
class Picked final : public Source {
 public:
  Picked(std::unique_ptr<Source> source, Positions positions)
      : Source(facts_of(*source, positions)),
        source_(std::move(source)),
        positions_(std::move(positions)) {
    PENSTOCK_ASSERT(abilities().by_position && !abilities().by_key,
                    "rows are picked by their positions");
  }

  std::string version_of_copy() const override {
    return source_->version_of_copy();
  }
  RowCount count() const override {
    return {.rows = std::ssize(*positions_), .exact = true};
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
};

}  // namespace

std::unique_ptr<Source> picked(std::unique_ptr<Source> source,
                               Positions positions) {
  return std::make_unique<Picked>(std::move(source), std::move(positions));
}

}  // namespace penstock
