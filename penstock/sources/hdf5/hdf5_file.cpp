#include "penstock/sources/hdf5/hdf5_file.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "penstock/base/error.h"
#include "penstock/base/host_limits.h"
#include "penstock/base/log.h"
#include "penstock/base/sync.h"
#include "penstock/sources/files/row_slice.h"
#include "penstock/sources/hdf5/indexer.h"

namespace penstock::hdf5 {
namespace {

/// Rows that are read together have at least so many bytes.
constexpr std::int64_t kLeastBytes = 32 << 10;
constexpr std::size_t kMostKept = std::size_t{1} << 30;

/// The decoded chunks of a source, while any reader is there.
class SharedChunks {
 public:
  explicit SharedChunks(std::size_t budget) : budget_(budget) {}

  std::shared_ptr<DecodedChunks> get() {
    Lock lock(mutex_);
    std::shared_ptr<DecodedChunks> chunks = chunks_.lock();
    if (chunks == nullptr) {
      chunks = std::make_shared<DecodedChunks>(budget_);
      chunks_ = chunks;
    }
    return chunks;
  }
  std::size_t budget() const { return budget_; }
  /// Adds what a file holds decoded.
  void add(std::size_t bytes) { all_bytes_ += bytes; }
  void drop(std::size_t bytes) { all_bytes_ -= bytes; }
  /// Not all of them can stay for the next epoch, so those of which each row
  /// was taken make room for others.
  bool lets_go() const { return all_bytes_ > budget_; }

 private:
  const std::size_t budget_;
  std::size_t all_bytes_ = 0;  // known before there is a reader
  Mutex mutex_;
  std::weak_ptr<DecodedChunks> chunks_ PENSTOCK_GUARDED_BY(mutex_);
};

std::size_t budget_of(const FileSettings& settings) {
  if (settings.decoded_gib >= 0)
    return static_cast<std::size_t>(settings.decoded_gib *
                                    static_cast<double>(1 << 30));
  const std::size_t free = read_host_limits().memory_free.value_or(kMostKept);
  return std::min(kMostKept, free / 8);
}

// Immutable but for `taken_`, so any number of readers share it. Invariants:
//   1. chunk_ends ascends strictly and ends at rows_.rows.
//   2. What the file holds decoded is in the sum of `chunks_` just once:
//      for_columns() takes it out before the file that it makes adds its own.
//   3. `taken_` has a count for each chunk, and the thread that brings one to
//      the chunk's rows sets it back to 0.
class Hdf5File final : public files::RowFile,
                       public std::enable_shared_from_this<Hdf5File> {
 public:
  Hdf5File(std::shared_ptr<const IndexedFile> file, RowColumns columns,
           std::shared_ptr<SharedChunks> chunks, StopFlag stop)
      : file_(std::move(file)),
        rows_(std::move(columns)),
        chunks_(std::move(chunks)),
        stop_(stop) {
    for (const RowColumn& column : rows_.columns)
      facts_.columns.push_back(column.column);
    facts_.left_out = rows_.refused;
    std::ranges::move(of_other_lengths(rows_),
                      std::back_inserter(facts_.left_out));
    facts_.other_files = other_files();
    facts_.decoded_bytes = decoded_bytes();
    facts_.kept_bytes = chunks_->budget();
    if (rows_.row_bytes.empty())
      cut_evenly();
    else
      cut_samples();
    chunks_->add(facts_.decoded_bytes);
    taken_ =
        std::make_unique<std::atomic<std::int64_t>[]>(facts_.chunk_ends.size());
  }

  std::unique_ptr<files::ChunkReader> open(
      const std::vector<std::size_t>& columns) const override;

  std::shared_ptr<const files::RowFile> for_columns(
      const std::vector<files::ReadColumn>& columns) const override {
    if (file_ == nullptr) return nullptr;  // a damaged one that is left out
    std::vector<std::size_t> read;
    for (const files::ReadColumn& one : columns) read.push_back(one.column);
    auto chosen = of_length(rows_, read, file_->data.path);
    if (!chosen) return nullptr;
    chunks_->drop(facts_.decoded_bytes);
    return std::make_shared<Hdf5File>(file_, std::move(*chosen), chunks_,
                                      stop_);
  }

 private:
  friend class Hdf5Reader;

  std::size_t decoded_bytes() const {
    std::int64_t bytes = 0;
    std::vector<const DataSet*> seen;
    for (const RowColumn& column : rows_.columns) {
      const DataSet* set = column.view.set;
      if (set == nullptr || set->filters.empty() || column.rows != rows_.rows ||
          std::ranges::find(seen, set) != seen.end())
        continue;
      seen.push_back(set);
      bytes += set->chunk_bytes() * std::ssize(set->places);
    }
    return static_cast<std::size_t>(bytes);
  }
  std::vector<files::DataFile> other_files() const;

  void cut_evenly() {
    const RowView& view = rows_.leading;
    std::int64_t along = 1, bytes = 1;
    if (view.set != nullptr) {
      bytes = std::max<std::int64_t>(1, view.row_bytes());
      if (view.set->layout == DataSet::Layout::chunked)
        along = view.set->chunk[view.axis()];
    }
    const std::int64_t together = rows_.windows.together(
        along * std::max<std::int64_t>(
                    1, kLeastBytes / std::max<std::int64_t>(1, along * bytes)),
        static_cast<std::size_t>(bytes));
    for (std::int64_t end = 0; end < rows_.rows;)
      facts_.chunk_ends.push_back(end = std::min(rows_.rows, end + together));
  }

  void cut_samples() {
    std::int64_t bytes = 0;
    for (std::int64_t row = 0; row < rows_.rows; ++row) {
      bytes += rows_.row_bytes[static_cast<std::size_t>(row)];
      if (bytes < kLeastBytes && row + 1 < rows_.rows) continue;
      facts_.chunk_ends.push_back(row + 1);
      bytes = 0;
    }
  }

  const std::shared_ptr<const IndexedFile> file_;
  const RowColumns rows_;
  const std::shared_ptr<SharedChunks> chunks_;
  const StopFlag stop_;
  /// By chunk: rows that were taken by position since all of them were. Counts
  /// alone, which nothing else follows.
  std::unique_ptr<std::atomic<std::int64_t>[]> taken_;
};

// Belongs to one thread. `last_` is only shared between columns of one read():
// members of a compound, which lie in the same rows. It is dropped before and
// after, since the next chunk has other rows of the same data set.
class Hdf5Reader final : public files::ChunkReader {
 public:
  Hdf5Reader(std::shared_ptr<const Hdf5File> file,
             const std::vector<std::size_t>& columns)
      : file_(std::move(file)),
        reader_(file_->chunks_->get(), file_->stop_),
        heap_(reader_) {
    for (std::size_t column : columns) {
      columns_.push_back(&file_->rows_.columns[column]);
      overlap_ = overlap_ || !columns_.back()->windows.consecutive();
    }
    as_stored_ = std::ranges::all_of(columns_, is_as_stored);
    reader_.decode_late(file_->chunks_->lets_go());
  }

  files::Placed place(std::int64_t chunk, std::span<const std::int64_t> rows,
                      std::span<const std::size_t> places, Block& to,
                      bool wait) override {
    if (!as_stored_) return files::Placed::no;
    const std::int64_t first = file_->chunk_begin(chunk);
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const RowColumn& of = *columns_[c];
      std::byte* begin =
          files::place_of_rows(to.columns[c], of.plan.item, to.rows);
      if (begin == nullptr) return files::Placed::no;
      const files::Placed placed =
          reader_.place(of.view, of.first + first, rows, places, begin, wait);
      if (placed != files::Placed::yes) return placed;
    }
    return files::Placed::yes;
  }

  void again(bool yes) override { reader_.keep_chunks(yes || overlap_); }

  // Of several readers, the one that adds the last rows of a chunk lets it go;
  // a count that is off for a moment costs a second decoding, nothing else.
  void took(std::int64_t chunk, std::int64_t rows) override {
    if (!file_->chunks_->lets_go() || overlap_) return;
    const std::int64_t first = file_->chunk_begin(chunk);
    const std::int64_t all = file_->chunk_end(chunk) - first;
    std::atomic<std::int64_t>& taken =
        file_->taken_[static_cast<std::size_t>(chunk)];
    if (taken.fetch_add(rows) + rows < all) return;
    taken = 0;
    for (const RowColumn* of : columns_)
      if (of->from == RowColumn::From::set)
        reader_.forget(of->view, of->windows.begin(of->first + first),
                       of->windows.end(all));
  }

  void read(std::int64_t chunk, const files::PieceSink& sink) override {
    const std::int64_t first = file_->chunk_begin(chunk);
    Block block;
    block.rows = file_->chunk_end(chunk) - first;
    last_ = nullptr;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      block.columns.push_back(
          column_at(*columns_[c], c, first, block.rows, block.problems));
    last_ = nullptr;
    sink(std::move(block));
  }

 private:
  /// A row's bytes are those of the data set.
  static bool is_as_stored(const RowColumn* of) {
    const ValuePlan& plan = of->plan;
    return of->from == RowColumn::From::set && !of->windows && plan.at == 0 &&
           !plan.type.big && !plan.packed.unpacks &&
           dtype_of(plan.type) == plan.column.dtype &&
           plan.type.bytes * elements_of(Shape(plan.item)) ==
               of->view.row_bytes();
  }

  Column column_at(const RowColumn& of, std::size_t c, std::int64_t first,
                   std::int64_t rows, std::vector<RowProblem>& problems) {
    switch (of.from) {
      case RowColumn::From::set:
        return of_set(of, c, of.first + first, rows, problems);
      case RowColumn::From::cut:
        return cut(of, c, of.first + first, rows, problems);
      case RowColumn::From::samples:
        return samples(of, c, of.first + first, rows, problems);
      case RowColumn::From::constants:
      case RowColumn::From::values:
        break;
    }
    Column column;
    column.type = of.plan.column;
    column.item = of.plan.item;
    for (std::int64_t row = 0; row < rows; ++row)
      append(of.from == RowColumn::From::constants
                 ? of.values[0]
                 : of.values[static_cast<std::size_t>(of.first + first + row)],
             column);
    return column;
  }

  static void append(const Json& value, Column& column) {
    if (column.type.kind == ColumnKind::fixed)
      return append_numbers(value.array(), column);
    const bool text = column.type.is_text();
    if (text ? !value.is_string() : !value.is_number()) {
      column.append_null();
    } else if (text) {
      column.append_text(value.string());
    } else if (column.type == ColumnType::int64) {
      column.append_int64(value.integer());
    } else {
      column.append_float64(value.number());
    }
  }

  /// All rows of such a column have lists of one length.
  static void append_numbers(const Json::Array& numbers, Column& column) {
    for (const Json& number : numbers)
      if (column.type.dtype == Dtype::int64)
        column.values.append_value(number.integer());
      else
        // JSON has no NaN.
        column.values.append_value(
            number.is_number() ? number.number()
                               : std::numeric_limits<double>::quiet_NaN());
    ++column.length;
  }

  Column of_set(const RowColumn& of, std::size_t c, std::int64_t first,
                std::int64_t rows, std::vector<RowProblem>& problems) {
    const files::Windows& windows = of.windows;
    RawRows raw = rows_of(of.view, windows.begin(first), windows.end(rows));
    std::int64_t stride = of.view.row_bytes();
    if (windows) {
      raw.bytes = windows.cut(std::move(raw.bytes),
                              static_cast<std::size_t>(stride), rows);
      raw.bad = files::bad_windows(std::move(raw.bad), windows, rows);
      stride *= windows.length;
    }
    return penstock::hdf5::column_of(of.plan, std::move(raw), rows, stride,
                                     *of.file, heap_, c, problems);
  }

  /// Several columns of one data set read its rows once.
  RawRows rows_of(const RowView& view, std::int64_t first, std::int64_t rows) {
    if (last_ == nullptr || last_set_ != view.set) {
      last_ = std::make_shared<RawRows>(reader_.read(view, first, rows));
      last_set_ = view.set;
    }
    return {.bytes = Bytes::borrow(last_->bytes.span(), last_),
            .bad = last_->bad};
  }

  Column cut(const RowColumn& of, std::size_t c, std::int64_t first,
             std::int64_t rows, std::vector<RowProblem>& problems) {
    const std::vector<std::int64_t>& offsets = *of.offsets;
    const std::int64_t begin = offsets[static_cast<std::size_t>(first)];
    const std::int64_t end = offsets[static_cast<std::size_t>(first + rows)];
    RawRows raw = reader_.read(of.view, begin, end - begin);
    const std::vector<BadRows> bad = std::move(raw.bad);
    const std::int64_t each = of.view.values();
    Column column;
    column.type = ColumnType::list;
    column.length = rows;
    column.children.push_back(
        numbers_of(of.plan, std::move(raw), (end - begin) * each));
    column.offsets.append_value(std::int64_t{0});
    std::vector<BadRows> bad_rows;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t from = offsets[static_cast<std::size_t>(first + row)];
      const std::int64_t to =
          offsets[static_cast<std::size_t>(first + row + 1)];
      column.offsets.append_value((to - begin) * each);
      for (const BadRows& values : bad)
        if (values.first + begin < to && values.end + begin > from) {
          bad_rows.push_back({row, row + 1, values.why});
          break;
        }
    }
    files::mark_bad(bad_rows, c, column, problems);
    return column;
  }

  Column samples(const RowColumn& of, std::size_t c, std::int64_t first,
                 std::int64_t rows, std::vector<RowProblem>& problems) {
    const bool list = of.plan.column.kind == ColumnKind::list &&
                      of.plan.type.is != ValueType::Is::list;
    RawRows all;
    Column lists;
    lists.type = ColumnType::list;
    if (list)
      lists.children.emplace_back().type = ColumnType::number(of.plan.numbers);
    std::vector<BadRows> missing;
    const std::int64_t stride =
        of.plan.type.bytes * elements_of(Shape(of.plan.item));
    for (std::int64_t row = 0; row < rows; ++row) {
      const DataSet* set = of.sets[static_cast<std::size_t>(first + row)];
      RawRows one;
      if (set != nullptr)
        one = reader_.read({.file = of.file.get(), .set = set}, 0,
                           set->dims.empty() ? 1 : set->dims[0]);
      else
        missing.push_back({row, row + 1, ""});
      for (const BadRows& bad : one.bad)
        if (all.bad.empty() || all.bad.back().first != row)
          all.bad.push_back({row, row + 1, bad.why});
      if (!list) {
        // A text may be shorter than that of another row.
        all.bytes.append(one.bytes.data(), one.bytes.size());
        append_zeros(all.bytes,
                     static_cast<std::size_t>(stride) - one.bytes.size());
        continue;
      }
      const std::int64_t count =
          std::ssize(one.bytes.span()) / of.plan.type.bytes;
      const Column numbers = numbers_of(of.plan, std::move(one), count);
      lists.children[0].values.append(numbers.values.data(),
                                      numbers.values.size());
      lists.children[0].length += count;
      lists.append_list();
    }
    Column column = std::move(lists);
    if (list)
      files::mark_bad(all.bad, c, column, problems);
    else
      column = penstock::hdf5::column_of(of.plan, std::move(all), rows, stride,
                                         *of.file, heap_, c, problems);
    std::vector<RowProblem> none;
    files::mark_bad(missing, c, column, none);
    return column;
  }

  static void append_zeros(Bytes& to, std::size_t size) {
    const std::size_t at = to.size();
    to.resize(at + size);
    std::memset(to.mutable_data<std::byte>() + at, 0, size);
  }

  const std::shared_ptr<const Hdf5File> file_;
  std::vector<const RowColumn*> columns_;
  RawReader reader_;
  GlobalHeap heap_;
  std::shared_ptr<RawRows> last_;
  const DataSet* last_set_ = nullptr;
  bool overlap_ = false;  // windows need a chunk again
  bool as_stored_ = false;
};

std::vector<files::DataFile> Hdf5File::other_files() const {
  std::vector<const IndexedFile*> found = {file_.get()};
  auto add = [&](const IndexedFile* file) {
    if (file != nullptr && std::ranges::find(found, file) == found.end())
      found.push_back(file);
  };
  for (const RowColumn& column : rows_.columns) {
    add(column.file.get());
    auto add_mapped = [&](const DataSet* set) {
      if (set == nullptr) return;
      for (const Mapping& mapping : set->mappings)
        add(column.file->file_of(mapping));
    };
    add_mapped(column.view.set);
    for (const DataSet* set : column.sets) add_mapped(set);
  }
  std::vector<files::DataFile> others;
  for (auto file = found.begin() + 1; file != found.end(); ++file)
    others.push_back((*file)->data);
  return others;
}

std::unique_ptr<files::ChunkReader> Hdf5File::open(
    const std::vector<std::size_t>& columns) const {
  return std::make_unique<Hdf5Reader>(shared_from_this(), columns);
}

/// The columns of `source.labels` beside those of all files.
void add_labels(const FileSettings& settings, Indexer& indexer,
                RawReader& reader, std::vector<RowColumns>& all) {
  if (settings.row_labels.empty()) return;
  const auto labels =
      indexer.index(files::file_at(settings.row_labels, settings.row_labels));
  RowSettings plain = row_settings_of(settings);
  plain.group = "/";
  plain.samples = RowSettings::Samples::rows;
  plain.ragged.clear();
  plain.windows.clear();
  const RowColumns columns = columns_of(labels, plain, reader);
  std::int64_t rows = 0;
  for (RowColumns& one : all) {
    if (rows + one.rows <= columns.rows) add_columns(columns, rows, one);
    rows += one.rows;
  }
  if (rows == columns.rows) return;
  throw Error(ErrorKind::source,
              {.code = "hdf5.lengths",
               .what = "cannot add labels to the rows",
               .where = settings.row_labels,
               .why = "the file of labels has " + std::to_string(columns.rows) +
                      " rows, but the files have " + std::to_string(rows),
               .next = "name a file with one label for each row, in the same "
                       "order, as source.labels"});
}

}  // namespace

namespace {

/// Files that cannot be read have the columns of the others, and no rows.
void leave_out(const std::vector<std::shared_ptr<const IndexedFile>>& indexed,
               std::vector<RowColumns>& columns) {
  const auto good = std::ranges::find_if(
      indexed, [](const auto& file) { return file != nullptr; });
  if (good == indexed.end()) return;
  const RowColumns& whole =
      columns[static_cast<std::size_t>(good - indexed.begin())];
  for (std::size_t f = 0; f < indexed.size(); ++f)
    if (indexed[f] == nullptr) {
      columns[f].columns = whole.columns;
      for (RowColumn& column : columns[f].columns) column.rows = -1;
    }
}

bool longer(const RowColumn& a, const RowColumn& b) {
  return a.view.rows() > b.view.rows();
}

/// Columns of other lengths than what is read by default are there to be named.
/// What only some files have in this way is not one of the source's.
void drop_unlike_others(std::vector<RowColumns>& all) {
  std::vector<std::map<std::string, ColumnType>> types(all.size());
  for (std::size_t f = 0; f < all.size(); ++f)
    for (const RowColumn& one : all[f].columns)
      types[f][one.column.name] = one.column.type;
  for (RowColumns& of : all)
    std::erase_if(of.columns, [&](const RowColumn& one) {
      if (one.rows < 0 || one.rows == of.rows) return false;
      const bool in_all = std::ranges::all_of(types, [&](const auto& other) {
        const auto found = other.find(one.column.name);
        return found != other.end() && found->second == one.column.type;
      });
      if (!in_all)
        of.refused.push_back(
            {one.column.name,
             "the data set has " + std::to_string(one.rows) +
                 " rows, but the data sets that are read by default have " +
                 std::to_string(of.rows),
             "write it to all files with one type, or name one file"});
      return !in_all;
    });
}

/// Windows of what is no long data set of the files themselves.
void refuse_other_windows(const RowColumns& rows,
                          const std::vector<WindowsOf>& windows) {
  for (const WindowsOf& one : windows)
    for (const RowColumn& column : rows.columns)
      if (column.column.name == one.path && !column.windows)
        throw Error(ErrorKind::request,
                    {.code = "source.window",
                     .what = "cannot read windows of column '" + one.path + "'",
                     .where = one.setting,
                     .why = "the column is not one long data set of numbers in "
                            "each file, but " +
                            column.column.declared,
                     .next = "leave \"window\" out, or name a data set whose "
                             "first dimension counts elements"});
}

/// Windows that are longer than all that they are cut from.
void refuse_longer_windows(const std::vector<RowColumns>& all) {
  const RowColumn* of = nullptr;
  std::int64_t rows = 0;
  for (const RowColumns& one : all) {
    rows += one.rows;
    for (const RowColumn& column : one.columns)
      if (column.windows && (of == nullptr || longer(column, *of)))
        of = &column;
  }
  if (rows == 0 && of != nullptr && of->view.rows() > 0)
    files::refuse_windows(of->file->data.path, of->column.name,
                          of->windows.length, of->view.rows());
}

}  // namespace

std::vector<std::shared_ptr<const files::RowFile>> open_hdf5(
    const SourceSpec& spec, const std::vector<files::DataFile>& data,
    const std::vector<WindowsOf>& windows, StopFlag stop) {
  const FileSettings& settings = file_settings_of(spec);
  RowSettings rows = row_settings_of(settings);
  rows.windows = windows;
  auto chunks = std::make_shared<SharedChunks>(budget_of(settings));
  RawReader reader(chunks->get(), stop);
  Indexer indexer(settings.copied_from, stop);
  std::vector<std::shared_ptr<const IndexedFile>> indexed;
  std::vector<RowColumns> columns;
  for (const files::DataFile& file : data) {
    end_if_stopped(stop);
    try {
      indexed.push_back(indexer.index(file));
      columns.push_back(columns_of(indexed.back(), rows, reader));
    } catch (const Error& error) {
      const bool last = &file == &data.back() &&
                        std::ranges::all_of(indexed, [](const auto& one) {
                          return one == nullptr;
                        });
      if (!spec.skip_bad || last || is_stop(error)) throw;
      log(LogLevel::warning,
          std::string(error.what()) +
              "; the file is left out, since source.on_bad is \"skip\"");
      indexed.resize(columns.size());
      indexed.push_back(nullptr);
      columns.emplace_back();
    }
  }
  warn_of_rows_twice(indexed);
  leave_out(indexed, columns);
  drop_unlike_others(columns);
  add_labels(settings, indexer, reader, columns);
  for (const RowColumns& one : columns) refuse_other_windows(one, windows);
  refuse_longer_windows(columns);
  std::vector<std::shared_ptr<const files::RowFile>> opened;
  for (std::size_t f = 0; f < data.size(); ++f)
    opened.push_back(std::make_shared<Hdf5File>(
        indexed[f], std::move(columns[f]), chunks, stop));
  return opened;
}

}  // namespace penstock::hdf5
