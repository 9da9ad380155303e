#include "penstock/sources/concatenated.h"

#include <algorithm>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/sources/row_gather.h"

namespace penstock {
namespace {

[[noreturn]] void refuse(const Source& source, const Source& first,
                         std::string why) {
  throw Error(ErrorKind::request,
              {.code = "source.other_columns",
               .what = "cannot concatenate the sources",
               .where = source.shown(),
               .why = std::move(why),
               .next = "give this source the columns of " + first.shown() +
                       ", with a view or a cast for example"});
}

void check_alike(const Source& source, const Source& first) {
  if (source.types().size() != first.types().size())
    refuse(source, first,
           "the source has " + std::to_string(source.types().size()) +
               " columns, and the first source has " +
               std::to_string(first.types().size()));
  for (std::size_t c = 0; c < first.types().size(); ++c)
    if (source.types()[c] != first.types()[c])
      refuse(source, first,
             "column " + std::to_string(c + 1) + " is " +
                 std::string(name_of(source.types()[c])) +
                 ", and that of the first source is " +
                 std::string(name_of(first.types()[c])));
  const Abilities &its = source.abilities(), &other = first.abilities();
  if (its.by_key != other.by_key || its.by_position != other.by_position)
    refuse(source, first,
           "rows of one source are found by key, and rows of the other by "
           "position");
  if (its.by_key && source.facts().key != first.facts().key)
    refuse(source, first,
           "the keys of the source are " +
               std::string(name_of(source.facts().key)) +
               ", and those of the first source are " +
               std::string(name_of(first.facts().key)));
}

SourceFacts facts_of(const std::vector<std::unique_ptr<Source>>& sources) {
  const Source& first = *sources.front();
  SourceFacts facts = first.facts();
  if (!facts.abilities.by_key)
    facts.key = ColumnType::int64;  // over all of them
  facts.identity = Json(Json::Object{});
  facts.identity["kind"] = "concatenated";
  facts.identity["sources"] = Json::Array{};
  facts.shown.clear();
  facts.chunks = nullptr;  // until all of them have been looked at
  for (const auto& source : sources) {
    check_alike(*source, first);
    facts.shown += (facts.shown.empty() ? "" : " + ") + source->shown();
    facts.identity["sources"].push_back(source->identity());
    facts.abilities.global_lock |= source->abilities().global_lock;
    // One source's keys need not follow those of the source before.
    facts.abilities.sorted &= source->abilities().sorted;
    facts.abilities.sorted &= source->abilities().by_position;
  }
  return facts;
}

/// What readers share. `begins[s]`: the position of the first row of source s.
/// `begins` ascends; a source without rows begins where the next one does, and
/// the search takes the last of such sources, which has the row.
struct Parts {
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<std::int64_t> begins;

  std::size_t source_of(std::int64_t position) const {
    auto after = std::ranges::upper_bound(begins, position);
    return static_cast<std::size_t>(after - begins.begin()) - 1;
  }
};

/// A partition of one of the sources.
struct Inner {
  std::size_t source;
  Partition partition;
};

// Opens the reader of a source when it is first needed: of hundreds of sources
// a request often touches few. Each inner reader stays on this one's thread.
class ConcatenatedReader final : public Reader {
 public:
  explicit ConcatenatedReader(std::shared_ptr<const Parts> parts)
      : parts_(std::move(parts)), readers_(parts_->sources.size()) {}

  void scan(const Partition& partition, BlockLimit limit,
            const BlockSink& sink) override {
    const auto& inner = *static_cast<const Inner*>(partition.snapshot.get());
    const Source& source = *parts_->sources[inner.source];
    const std::int64_t begin = parts_->begins[inner.source];
    const bool numbered =
        source.abilities().by_position && !source.abilities().by_key;
    reader(inner.source)
        .scan(inner.partition, limit, [&](KeyList& keys, Block& block) {
          if (!numbered || begin == 0) return sink(keys, block);
          KeyList moved;
          for (std::int64_t row = 0; row < keys.size(); ++row)
            moved.append_integer(begin + keys.integer(row));
          return sink(moved, block);
        });
  }

  void read(const ReadRequest& request, Block& out) override {
    if (request.keys != nullptr)
      read_keys(request, out);
    else
      read_positions(request, out);
  }

 private:
  Reader& reader(std::size_t source) {
    if (readers_[source] == nullptr)
      readers_[source] = parts_->sources[source]->open_reader();
    return *readers_[source];
  }

  void read_positions(const ReadRequest& request, Block& out) {
    std::vector<std::vector<std::int64_t>> rows(readers_.size());
    for (std::int64_t row = 0; row < request.rows(); ++row)
      rows[source_at(request, row)].push_back(row);
    RowGather gather(parts_->sources[0]->types(), request.rows());
    for (std::size_t s = 0; s < rows.size(); ++s) {
      if (rows[s].empty()) continue;
      std::vector<std::int64_t> positions;
      for (std::int64_t row : rows[s])
        positions.push_back(request.positions[static_cast<std::size_t>(row)] -
                            parts_->begins[s]);
      Block found;
      reader(s).read(ReadRequest(positions), found);
      gather.add(std::move(found), rows[s]);
    }
    gather.finish(out);
  }

  void read_keys(const ReadRequest& request, Block& out) {
    std::vector<std::int64_t> left(static_cast<std::size_t>(request.rows()));
    for (std::size_t row = 0; row < left.size(); ++row)
      left[row] = static_cast<std::int64_t>(row);
    RowGather gather(parts_->sources[0]->types(), request.rows());
    for (std::size_t s = 0; s < readers_.size() && !left.empty(); ++s) {
      KeyList keys(request.keys->type());
      for (std::int64_t row : left) keys.append(*request.keys, row);
      // Keys that the last source does not have either are gone.
      bool last = s + 1 == readers_.size();
      std::vector<std::int64_t> gone, found_rows, still;
      ReadRequest part(keys);
      if (!last || request.gone != nullptr) part.gone = &gone;
      Block found;
      reader(s).read(part, found);
      std::vector<bool> is_gone(left.size());
      for (std::int64_t row : gone)
        is_gone[static_cast<std::size_t>(row)] = true;
      for (std::size_t row = 0; row < left.size(); ++row)
        if (is_gone[row]) still.push_back(left[row]);
      if (last && request.gone != nullptr) *request.gone = still;
      gather.add(std::move(found), left);  // what is found later comes over it
      left = std::move(still);
    }
    gather.finish(out);
  }

  std::size_t source_at(const ReadRequest& request, std::int64_t row) const {
    std::int64_t at = request.positions[static_cast<std::size_t>(row)];
    PENSTOCK_ASSERT(at >= 0, "a position is not negative");
    return parts_->source_of(at);
  }

  std::shared_ptr<const Parts> parts_;
  std::vector<std::unique_ptr<Reader>> readers_;  // by source; may be null
};

class Concatenated final : public Source {
 public:
  explicit Concatenated(std::vector<std::unique_ptr<Source>> sources)
      : Source(facts_of(sources)), parts_(std::make_shared<Parts>()) {
    parts_->sources = std::move(sources);
    std::int64_t begin = 0;
    bool all_have_chunks = abilities().by_position;
    auto all = std::make_shared<ChunkMap>();
    for (const auto& source : parts_->sources) {
      parts_->begins.push_back(begin);
      if (!abilities().by_position) continue;
      const ChunkMap* chunks = source->chunks();
      all_have_chunks &= chunks != nullptr;
      if (all_have_chunks) {
        for (std::int64_t end : chunks->ends) all->ends.push_back(begin + end);
        all->chunk_ns = std::max(all->chunk_ns, chunks->chunk_ns);
        // A reader has one of each source, which keep what they have decoded.
        all->reader.scanning =
            std::max(all->reader.scanning, chunks->reader.scanning);
        all->reader.by_position += chunks->reader.by_position;
      }
      begin += source->count().rows.value_or(0);
    }
    if (all_have_chunks && !all->ends.empty()) facts_.chunks = std::move(all);
  }

  std::string version_of_copy() const override {
    std::string all;
    for (const auto& source : parts_->sources) all += source->version_of_copy();
    return all;
  }
  RowCount count() const override {
    RowCount sum{.rows = 0, .exact = true};
    for (const auto& source : parts_->sources) {
      RowCount rows = source->count();
      if (!rows.rows) return {};
      *sum.rows += *rows.rows;
      sum.exact &= rows.exact;
    }
    return sum;
  }

  // The inner partition, with its snapshot, is held by the outer one, so it
  // ends when that does. Each source makes as many parts as there are readers,
  // whatever its share of the rows, since no source knows the others.
  std::vector<Partition> partitions(int readers) override {
    std::vector<Partition> all;
    for (std::size_t s = 0; s < parts_->sources.size(); ++s) {
      const Source& source = *parts_->sources[s];
      const std::int64_t begin = parts_->begins[s];
      for (Partition& inner : parts_->sources[s]->partitions(readers)) {
        Partition outer{.range = inner.range + " of " + source.shown(),
                        .index = std::ssize(all),
                        .first = begin + inner.first,
                        .end = begin + inner.end};
        outer.snapshot = std::make_shared<Inner>(Inner{s, std::move(inner)});
        all.push_back(std::move(outer));
      }
    }
    return all;
  }

  std::string place_of(std::int64_t position) const override {
    if (!abilities().by_position || position < 0) return {};
    const std::size_t s = parts_->source_of(position);
    return parts_->sources[s]->place_of(position - parts_->begins[s]);
  }

  bool lengths(std::size_t request, std::int64_t first,
               std::span<std::int32_t> out) const override {
    for (const auto& source : parts_->sources)
      if (!source->lengths(request, 0, {})) return false;
    while (!out.empty()) {
      std::size_t s = parts_->source_of(first);
      std::size_t some = out.size();
      if (s + 1 < parts_->begins.size())
        some = std::min(
            some, static_cast<std::size_t>(parts_->begins[s + 1] - first));
      parts_->sources[s]->lengths(request, first - parts_->begins[s],
                                  out.first(some));
      out = out.subspan(some);
      first += static_cast<std::int64_t>(some);
    }
    return true;
  }

  std::unique_ptr<Reader> open_reader() override {
    return std::make_unique<ConcatenatedReader>(parts_);
  }

 private:
  std::shared_ptr<Parts> parts_;
};

}  // namespace

std::unique_ptr<Source> concatenated(
    std::vector<std::unique_ptr<Source>> sources) {
  PENSTOCK_ASSERT(!sources.empty(), "there is a source to read");
  return std::make_unique<Concatenated>(std::move(sources));
}

}  // namespace penstock
