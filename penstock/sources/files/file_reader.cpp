#include "penstock/sources/files/file_reader.h"

#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/sources/blocks.h"
#include "penstock/sources/files/ascending.h"
#include "penstock/sources/files/row_slice.h"

// A chunk of a file is the unit that is decoded: a row group, a record batch, a
// run of lines. It comes in pieces, which are blocks of the requested columns;
// a scan hands out slices of a piece, which borrow it, and a read gathers rows
// of the pieces of the last chunk that it has decoded.

namespace penstock::files {
namespace {

/// Answers the requests from pieces of files. Nothing is copied where all rows
/// are kept.
class Selection {
 public:
  explicit Selection(const OpenedFiles& opened) : opened_(opened) {}

  /// Numbers keep their width where `as_taken`.
  Block apply(Block&& piece, bool as_taken) {
    const std::size_t requests = opened_.served.size();
    bool all = true;
    if (opened_.where) {
      select_rows(*opened_.where, piece, requests, rows_);
      all = std::ssize(rows_) == piece.rows;
    }
    piece.columns.resize(requests);
    // The condition's columns are not seen any more, their problems are.
    for (RowProblem& problem : piece.problems)
      if (problem.column >= requests) problem.column = 0;
    Block kept = all ? std::move(piece) : selected(std::move(piece));
    convert(kept, as_taken);
    if (requests == 0) kept.problems.clear();
    return kept;
  }

  void convert(Block& block, bool as_taken = false) const {
    for (std::size_t c = 0; c < block.columns.size(); ++c)
      if (!as_taken || opened_.served[c].by == ServedColumn::By::itself)
        block.columns[c] = converted(std::move(block.columns[c]),
                                     opened_.served[c], c, block.problems);
  }

 private:
  Block selected(Block&& piece) const {
    Block kept;
    kept.rows = std::ssize(rows_);
    for (const Column& column : piece.columns) {
      Column& to = kept.columns.emplace_back();
      to.type = column.type;
      append_rows(column, rows_, to);
    }
    for (RowProblem& problem : piece.problems) {
      auto at = std::ranges::lower_bound(rows_, problem.row);
      if (at == rows_.end() || *at != problem.row) continue;
      kept.problems.push_back(
          {at - rows_.begin(), problem.column, std::move(problem.why)});
    }
    return kept;
  }

  const OpenedFiles& opened_;
  std::vector<std::int64_t> rows_;
};

std::int64_t bytes_of(const Column& column, std::int64_t begin,
                      std::int64_t rows) {
  const std::int64_t bits = column.validity.size() == 0 ? 0 : rows / 8 + 2;
  switch (column.type.kind) {
    case ColumnKind::null:
      return 0;
    case ColumnKind::boolean:
      return bits + rows / 8 + 2;
    case ColumnKind::utf8:
    case ColumnKind::binary:
      return bits + (rows + 8) * (column.wide ? 8 : 4) +
             column.offset(begin + rows) - column.offset(begin);
    case ColumnKind::list:
      return bits + (rows + 8) * (column.wide ? 8 : 4) +
             bytes_of(column.children[0], column.offset(begin),
                      column.offset(begin + rows) - column.offset(begin));
    default:
      break;
  }
  return bits + (rows + 7) * static_cast<std::int64_t>(width_of(column));
}

/// The rows from `begin` on that fit into a block: one at least.
std::int64_t rows_that_fit(const Block& piece, std::int64_t begin,
                           std::int64_t most, BlockLimit limit) {
  for (std::int64_t rows = most; rows > 1; rows = (rows + 1) / 2) {
    std::int64_t bytes = 0;
    for (const Column& column : piece.columns)
      bytes += bytes_of(column, begin, rows);
    if (static_cast<std::size_t>(bytes) <= limit.bytes) return rows;
  }
  return 1;
}

/// All rows are given, with the values that are in the files.
bool are_as_in_files(const OpenedFiles& opened) {
  if (opened.where || opened.served.empty()) return false;
  for (std::size_t c = 0; c < opened.served.size(); ++c) {
    const SetColumn& of = opened.set->columns[opened.columns[c]];
    const ServedColumn& served = opened.served[c];
    if (of.chosen || served.by != ServedColumn::By::itself ||
        served.type != of.column.type)
      return false;
  }
  return true;
}

/// What rows that are read by position are taken as, to be converted when they
/// have been gathered: numbers of another width, of which a chunk has more than
/// somebody reads. What is converted in any other way takes less memory then. A
/// conversion of a whole chunk is wasted where a few of its rows are read, so
/// numbers are gathered in the file's own type and converted afterwards. Texts
/// that become numbers are converted at once: the result is the smaller one.
std::vector<ColumnType> taken_types(const OpenedFiles& opened) {
  std::vector<ColumnType> types = types_of(opened.served);
  using By = ServedColumn::By;
  if (std::ranges::any_of(opened.served, [](const ServedColumn& served) {
        return served.by != By::itself && served.by != By::number;
      }))
    return types;
  for (std::size_t c = 0; c < types.size(); ++c)
    if (opened.served[c].by == By::number)
      types[c] = opened.set->columns[opened.columns[c]].column.type;
  return types;
}

// Belongs to one thread. Invariants between two calls:
//   1. `kept_` has all pieces of chunk `kept_chunk_`, in their order, as
//      `taken_` types; kept_chunk_ is -1 where no chunk is kept. A chunk that
//      fails to decode leaves -1, so a half-read chunk is never used.
//   2. A position is a row over all files, without those that the condition
//      leaves out; `opened_->places` leads from a chunk to its file.
// While a request is answered, `order_` sorts it: order_[i] is the index in the
// request of the i-th smallest position. So each chunk is decoded once in a
// request, however the rows are shuffled: O(n log n) at most in its n
// positions.
class FileReader final : public Reader {
 public:
  explicit FileReader(std::shared_ptr<const OpenedFiles> opened)
      : opened_(std::move(opened)),
        reader_(opened_->set, opened_->columns),
        selection_(*opened_),
        as_in_files_(are_as_in_files(*opened_)),
        taken_(taken_types(*opened_)),
        converts_(taken_ != types_of(opened_->served)) {}

  void scan(const Partition& partition, BlockLimit limit,
            const BlockSink& sink) override {
    const OpenedFiles& of = *opened_;
    reader_.again(false);
    for (std::int64_t chunk = of.chunks.chunk_of(partition.first);
         chunk < std::ssize(of.chunks.ends) &&
         of.first_of(chunk) < partition.end;
         ++chunk) {
      std::int64_t at = of.first_of(chunk);
      bool more = true;
      read_chunk(chunk, false, [&](std::shared_ptr<const Block> piece) {
        std::int64_t begin = std::max<std::int64_t>(0, partition.first - at);
        std::int64_t end = std::min(piece->rows, partition.end - at);
        for (std::int64_t rows; more && begin < end; begin += rows) {
          rows = rows_that_fit(*piece, begin, std::min(limit.rows, end - begin),
                               limit);
          end_if_stopped(of.stop);
          more = hand_on(piece, begin, rows, at + begin, sink);
        }
        at += piece->rows;
        return more && at < partition.end;
      });
      check_file_of(chunk);
      if (!more) return;
    }
  }

  // Three ways, from the fastest: rows are copied to their places as a chunk is
  // decoded (read_in_place); they are gathered in the order of files and then
  // permuted; or, where the request ascends, gathered alone. Files are compared
  // with their stamps after the copy. Before it, a change in between would be
  // missed; together with the stamps of the opening this shows that all rows
  // are of one version.
  void read(const ReadRequest& request, Block& out) override {
    const OpenedFiles& of = *opened_;
    PENSTOCK_ASSERT(request.keys == nullptr, "rows in files have no keys");
    ascending(request.positions, order_, spare_);
    auto position = [&](std::size_t at) { return request.positions[at]; };
    if (read_in_place(request.positions, out)) return;
    Block sorted = block_in(std::move(out), taken_);
    for (std::size_t at = 0; at < order_.size();) {
      check_position(position(order_[at]));
      std::int64_t chunk = of.chunks.chunk_of(position(order_[at]));
      const std::int64_t end = of.chunks.ends[static_cast<std::size_t>(chunk)];
      std::size_t until = at;
      while (until < order_.size() && position(order_[until]) < end) ++until;
      gather(request.positions, chunk,
             std::span(order_).subspan(at, until - at), sorted);
      at = until;
    }
    check_files(request.positions);
    finish(sorted);
    if (std::ranges::is_sorted(order_)) {
      out = std::move(sorted);
      return;
    }
    bring_into_order(sorted, out);
  }

 private:
  void check_position(std::int64_t position) const {
    const std::int64_t rows = opened_->rows();
    if (position >= 0 && position < rows) return;
    throw Error(ErrorKind::source,
                {.code = "source.row_gone",
                 .what = "cannot read position " + std::to_string(position),
                 .where = place_of(opened_->spec),
                 .why = "the source has " + std::to_string(rows) + " rows",
                 .next = "start the run again"});
  }

  const DataFile& file_of(std::int64_t chunk) const {
    return opened_->set
        ->data[opened_->places[static_cast<std::size_t>(chunk)].first];
  }

  /// Throws files.changed: after rows were copied, so that what was copied is
  /// of one version of the file.
  void check_file_of(std::int64_t chunk) const {
    const std::size_t file =
        opened_->places[static_cast<std::size_t>(chunk)].first;
    check_same_file(opened_->set->data[file]);
    for (const DataFile& other : opened_->others[file]) check_same_file(other);
  }

  /// The same of all files that hold these rows, whose order is order_.
  void check_files(std::span<const std::int64_t> positions) const {
    const DataFile* checked = nullptr;
    for (std::size_t at = 0; at < order_.size();) {
      const Part part = part_at(positions, at);
      const DataFile* const file = &file_of(part.chunk);
      if (file != checked) check_file_of(part.chunk);
      checked = file;
      at = part.end;
    }
  }

  /// Decodes a chunk: its pieces as they answer the requests.
  template <class Sink>
  void read_chunk(std::int64_t chunk, bool as_taken, Sink sink) {
    const std::size_t file =
        opened_->places[static_cast<std::size_t>(chunk)].first;
    const std::int64_t of_file =
        opened_->places[static_cast<std::size_t>(chunk)].second;
    const std::int64_t expected =
        opened_->chunks.ends[static_cast<std::size_t>(chunk)] -
        opened_->first_of(chunk);
    if (expected == 0) return;
    std::int64_t found = 0;
    bool whole = true;
    unless_changed(file, [&] {
      reader_.read(file, of_file, [&](Block&& piece) {
        end_if_stopped(opened_->stop);
        Block applied =
            selection_.apply(std::move(piece), as_taken && converts_);
        std::ranges::stable_sort(applied.problems, {}, &RowProblem::row);
        auto kept = std::make_shared<const Block>(std::move(applied));
        found += kept->rows;
        if (found > expected) changed(file, found, expected);
        whole = kept->rows == 0 || sink(std::move(kept));
        return whole;
      });
    });
    if (whole && found != expected) changed(file, found, expected);
  }

  /// An error of a file that has changed meanwhile becomes files.changed.
  template <class Read>
  void unless_changed(std::size_t file, Read read) const {
    try {
      read();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::source && !is_stop(error))
        check_unchanged(opened_->set->data[file]);
      throw;
    }
  }

  [[noreturn]] void changed(std::size_t file, std::int64_t found,
                            std::int64_t expected) const {
    const DataFile& data = opened_->set->data[file];
    check_unchanged(data);
    throw Error(
        ErrorKind::source,
        {.code = "files.damaged",
         .what = "cannot read the rows",
         .where = data.path,
         .why = "a chunk of the file holds " + std::to_string(found) +
                " rows or more, but declares " + std::to_string(expected),
         .next = "get an intact copy of the file"});
  }

  bool hand_on(const std::shared_ptr<const Block>& piece, std::int64_t begin,
               std::int64_t rows, std::int64_t position,
               const BlockSink& sink) {
    Block block = slice_of(piece, begin, rows);
    keys_.clear();
    for (std::int64_t row = 0; row < rows; ++row)
      keys_.append_integer(position + row);
    return sink(keys_, block);
  }

  void keep_chunk(std::int64_t chunk) {
    if (chunk == kept_chunk_) return;
    kept_chunk_ = -1;
    kept_.clear();
    reader_.again(true);
    read_chunk(chunk, true, [&](std::shared_ptr<const Block> piece) {
      kept_.push_back(std::move(piece));
      return true;
    });
    kept_chunk_ = chunk;
  }

  /// Adds rows of one chunk, by ascending position.
  void gather(std::span<const std::int64_t> positions, std::int64_t chunk,
              std::span<const std::size_t> order, Block& to) {
    keep_chunk(chunk);
    std::int64_t first = opened_->first_of(chunk);
    std::size_t at = 0;
    for (const auto& piece : kept_) {
      rows_.clear();
      for (; at < order.size() && positions[order[at]] < first + piece->rows;
           ++at)
        rows_.push_back(positions[order[at]] - first);
      for (std::size_t c = 0; c < to.columns.size(); ++c)
        append_rows(piece->columns[c], rows_, to.columns[c]);
      for (const RowProblem& problem : piece->problems) {
        auto [begin, end] =
            std::equal_range(rows_.begin(), rows_.end(), problem.row);
        for (auto row = begin; row != end; ++row)
          to.problems.push_back(
              {to.rows + (row - rows_.begin()), problem.column, problem.why});
      }
      to.rows += std::ssize(rows_);
      first += piece->rows;
    }
  }

  /// Puts each row where it belongs at once, where all columns are plain.
  /// False: they are not, and `out` is to be made in another way. Two passes,
  /// so that a reader does not stand still behind a chunk that another thread
  /// decodes: in the first one such parts are put aside, in the second one they
  /// are waited for, when they are probably done.
  bool read_in_place(std::span<const std::int64_t> positions, Block& out) {
    for (const ColumnType& type : taken_)
      if (type.kind != ColumnKind::number && type.kind != ColumnKind::fixed)
        return false;
    Block placed = block_of(taken_);
    placed.rows = std::ssize(positions);
    // The memory of the rows that were read before.
    for (std::size_t c = 0; c < placed.columns.size(); ++c)
      if (c < out.columns.size() && out.columns[c].values.owned()) {
        placed.columns[c].values = std::move(out.columns[c].values);
        placed.columns[c].values.clear();
      }
    // What another reader decodes just now waits until the rest is done.
    later_.clear();
    for (std::size_t at = 0; at < order_.size();) {
      const Part part = part_at(positions, at);
      at = part.end;
      if (!place(part, positions, false, placed)) return false;
    }
    for (const Part& part : later_)
      if (!place(part, positions, true, placed)) return false;
    check_files(positions);
    finish(placed);
    out = std::move(placed);
    return true;
  }

  /// The rows order_[begin, end), which are of one chunk.
  struct Part {
    std::int64_t chunk;
    std::size_t begin, end;
  };

  Part part_at(std::span<const std::int64_t> positions, std::size_t at) const {
    check_position(positions[order_[at]]);
    Part part{opened_->chunks.chunk_of(positions[order_[at]]), at, at};
    const std::int64_t end =
        opened_->chunks.ends[static_cast<std::size_t>(part.chunk)];
    while (part.end < order_.size() && positions[order_[part.end]] < end)
      ++part.end;
    return part;
  }

  /// False: the rows are not plain.
  bool place(const Part& part, std::span<const std::int64_t> positions,
             bool wait, Block& to) {
    switch (place_decoded(part, positions, wait, to)) {
      case Placed::later:
        later_.push_back(part);
        return true;
      case Placed::no:
        if (!place_kept(part, positions, to)) return false;
        break;
      case Placed::yes:
        break;
    }
    took(part.chunk, part.end - part.begin);
    return true;
  }

  /// Lets the chunk's own reader put rows to their places as it decodes them.
  Placed place_decoded(const Part& part,
                       std::span<const std::int64_t> positions, bool wait,
                       Block& to) {
    if (!as_in_files_ || part.chunk == kept_chunk_) return Placed::no;
    const std::int64_t first = opened_->first_of(part.chunk);
    rows_.clear();
    for (std::size_t at = part.begin; at < part.end; ++at)
      rows_.push_back(positions[order_[at]] - first);
    const auto [file, of_file] =
        opened_->places[static_cast<std::size_t>(part.chunk)];
    end_if_stopped(opened_->stop);
    reader_.again(true);
    Placed placed = Placed::no;
    unless_changed(file, [&, f = file, c = of_file] {
      placed = reader_.place(f, c, rows_, places_of(part), to, wait);
    });
    return placed;
  }

  std::span<const std::size_t> places_of(const Part& part) const {
    return std::span(order_).subspan(part.begin, part.end - part.begin);
  }

  bool place_kept(const Part& part, std::span<const std::int64_t> positions,
                  Block& to) {
    keep_chunk(part.chunk);
    std::int64_t first = opened_->first_of(part.chunk);
    PENSTOCK_ASSERT(!kept_.empty(), "a chunk with a row has a piece");
    std::size_t at = part.begin;
    for (const auto& piece : kept_) {
      const std::size_t begin = at;
      rows_.clear();
      for (; at < part.end && positions[order_[at]] < first + piece->rows; ++at)
        rows_.push_back(positions[order_[at]] - first);
      first += piece->rows;
      if (!place(*piece, places_of({part.chunk, begin, at}), to)) return false;
    }
    return true;
  }

  void took(std::int64_t chunk, std::size_t rows) {
    if (opened_->where) return;  // which leaves some of its rows out
    const auto [file, of_file] =
        opened_->places[static_cast<std::size_t>(chunk)];
    reader_.took(file, of_file, static_cast<std::int64_t>(rows));
  }

  /// Puts `rows_` of a piece to their places; false: it is not plain.
  bool place(const Block& piece, std::span<const std::size_t> places,
             Block& to) const {
    if (!piece.problems.empty()) return false;
    for (std::size_t c = 0; c < to.columns.size(); ++c) {
      const Column& from = piece.columns[c];
      Column& column = to.columns[c];
      if (!is_plain(from)) return false;
      std::byte* begin = place_of_rows(column, from.item, to.rows);
      if (begin == nullptr) return false;  // files may have other shapes
      place_rows(from, rows_, places, begin);
    }
    return true;
  }

  void finish(Block& taken) const {
    if (!converts_) return;
    selection_.convert(taken);
    std::ranges::stable_sort(taken.problems, {}, &RowProblem::row);
  }

  void bring_into_order(const Block& sorted, Block& out) {
    rows_.resize(order_.size());  // of `sorted`, by place in the request
    for (std::size_t at = 0; at < order_.size(); ++at)
      rows_[order_[at]] = static_cast<std::int64_t>(at);
    out = block_of(opened_->served);
    out.rows = sorted.rows;
    for (std::size_t c = 0; c < out.columns.size(); ++c)
      append_rows(sorted.columns[c], rows_, out.columns[c]);
    for (const RowProblem& problem : sorted.problems)
      out.problems.push_back(
          {static_cast<std::int64_t>(
               order_[static_cast<std::size_t>(problem.row)]),
           problem.column, problem.why});
    std::ranges::stable_sort(out.problems, {}, &RowProblem::row);
  }

  const std::shared_ptr<const OpenedFiles> opened_;
  SetReader reader_;
  Selection selection_;
  const bool as_in_files_;
  const std::vector<ColumnType> taken_;  // by request, before conversion
  const bool converts_;
  KeyList keys_;
  std::vector<std::size_t> order_, spare_;
  std::vector<std::int64_t> rows_;
  std::vector<Part> later_;
  std::int64_t kept_chunk_ = -1;
  std::vector<std::shared_ptr<const Block>> kept_;
};

}  // namespace

std::string place_of(const SourceSpec& spec) {
  std::vector<std::string> paths = paths_of(spec);
  return paths[0] +
         (paths.size() == 1
              ? ""
              : " and " + std::to_string(paths.size() - 1) + " more");
}

void select_rows(const Where& where, const Block& piece, std::size_t first,
                 std::vector<std::int64_t>& rows) {
  where.select(piece, first, rows);
  const std::size_t sure = rows.size();
  for (const RowProblem& problem : piece.problems)
    if (problem.column >= first) rows.push_back(problem.row);
  if (rows.size() == sure) return;
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
}

std::unique_ptr<Reader> make_file_reader(
    std::shared_ptr<const OpenedFiles> opened) {
  return std::make_unique<FileReader>(std::move(opened));
}

}  // namespace penstock::files
