#include "penstock/sources/hdf5/raw_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "penstock/base/error.h"

namespace penstock::hdf5 {
namespace {

constexpr std::size_t kMostOpen = 8;

void fill(const DataSet& set, std::byte* to, std::int64_t values) {
  const auto width = static_cast<std::size_t>(set.type.bytes);
  if (set.fill.empty()) {
    std::memset(to, 0, width * static_cast<std::size_t>(values));
    return;
  }
  for (std::int64_t at = 0; at < values; ++at, to += width)
    std::memcpy(to, set.fill.data(), width);
}

/// Copies a box of a chunk to where it belongs among rows. The result is the
/// box [lows_, highs_) of the data set, which is whole in all dimensions but
/// that of rows. `from_strides_` count values in a chunk, always in C order;
/// `to_strides_` those in the result. A reversed view stores rows along the
/// last dimension: the result has its first dimension innermost, in the order
/// in which MATLAB shows it. Then only runs along the last dimension differ,
/// and they are copied value by value.
class BoxCopy {
 public:
  BoxCopy(const RowView& view, std::int64_t first, std::int64_t rows)
      : set_(*view.set),
        width_(static_cast<std::size_t>(set_.type.bytes)),
        lows_(set_.dims.size(), 0),
        highs_(set_.dims) {
    const std::size_t rank = set_.dims.size();
    lows_[view.axis()] = first;
    highs_[view.axis()] = first + rows;
    from_strides_.assign(rank, 1);
    to_strides_.assign(rank, 1);
    for (std::size_t d = rank - 1; d-- > 0;)
      from_strides_[d] = from_strides_[d + 1] * set_.chunk[d + 1];
    if (view.reversed)
      for (std::size_t d = 1; d < rank; ++d)
        to_strides_[d] = to_strides_[d - 1] * set_.dims[d - 1];
    else
      for (std::size_t d = rank - 1; d-- > 0;)
        to_strides_[d] = to_strides_[d + 1] * set_.dims[d + 1];
  }

  /// Null `from`: the fill value.
  void copy(const std::vector<std::int64_t>& corner, const std::byte* from,
            std::byte* to) {
    corner_ = &corner;
    from_ = from;
    to_ = to;
    along(0, 0, 0);
  }

 private:
  void along(std::size_t d, std::int64_t from, std::int64_t to) {
    const std::int64_t begin = std::max(lows_[d], (*corner_)[d]);
    const std::int64_t end = std::min(highs_[d], (*corner_)[d] + set_.chunk[d]);
    from += (begin - (*corner_)[d]) * from_strides_[d];
    to += (begin - lows_[d]) * to_strides_[d];
    if (d + 1 < lows_.size()) {
      for (std::int64_t at = begin; at < end; ++at) {
        along(d + 1, from, to);
        from += from_strides_[d];
        to += to_strides_[d];
      }
      return;
    }
    run(from, to, end - begin, to_strides_[d]);
  }

  void run(std::int64_t from, std::int64_t to, std::int64_t count,
           std::int64_t stride) const {
    if (count <= 0) return;
    std::byte* out = to_ + width_ * static_cast<std::size_t>(to);
    if (from_ != nullptr && stride == 1) {
      std::memcpy(out, from_ + width_ * static_cast<std::size_t>(from),
                  width_ * static_cast<std::size_t>(count));
      return;
    }
    for (std::int64_t at = 0; at < count; ++at) {
      if (from_ != nullptr)
        std::memcpy(out, from_ + width_ * static_cast<std::size_t>(from + at),
                    width_);
      else
        fill(set_, out, 1);
      out += width_ * static_cast<std::size_t>(stride);
    }
  }

  const DataSet& set_;
  const std::size_t width_;
  std::vector<std::int64_t> lows_, highs_, from_strides_, to_strides_;
  const std::vector<std::int64_t>* corner_ = nullptr;
  const std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
};

/// Calls `work(number, corner)` for each chunk that holds some of these rows.
/// `at` counts like an odometer over the cells of the grid between `low` and
/// `high`, the last dimension fastest; `number` is the row-major number of the
/// cell in the whole grid, which is its index in DataSet::places.
template <class Work>
void for_chunks(const RowView& view, std::int64_t first, std::int64_t rows,
                Work work) {
  const DataSet& set = *view.set;
  const std::size_t rank = set.dims.size(), axis = view.axis();
  std::vector<std::int64_t> low(rank, 0), high(rank), at;
  for (std::size_t d = 0; d < rank; ++d) high[d] = set.grid(d);
  low[axis] = first / set.chunk[axis];
  high[axis] = (first + rows - 1) / set.chunk[axis] + 1;
  std::vector<std::int64_t> corner(rank);
  for (at = low;;) {
    std::int64_t number = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      number = number * set.grid(d) + at[d];
      corner[d] = at[d] * set.chunk[d];
    }
    work(number, corner);
    std::size_t d = rank;
    while (d > 0 && ++at[d - 1] == high[d - 1]) {
      at[d - 1] = low[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

/// Lets the processor fetch a row that is copied next, and its place: they are
/// few lines here and there, which it does not foresee.
void fetch(std::span<const std::byte> chunk, std::size_t apart,
           std::size_t from, std::size_t width) {
  constexpr std::size_t kLine = 64;
  const std::size_t parts = std::max<std::size_t>(1, apart);
  const std::size_t each = width / parts, all = chunk.size() / parts;
  const std::byte* in = chunk.data() + from / parts;
  for (std::size_t part = 0; part < parts; ++part, in += all)
    for (std::size_t at = 0; at < each; at += kLine)
      __builtin_prefetch(in + at);
}

/// Its chunks are cut along rows alone.
bool holds_whole_rows(const RowView& view) {
  const DataSet& set = *view.set;
  if (view.reversed || set.layout != DataSet::Layout::chunked) return false;
  for (std::size_t d = 1; d < set.dims.size(); ++d)
    if (set.chunk[d] != set.dims[d]) return false;
  return true;
}

}  // namespace

std::int64_t RowView::values() const {
  std::int64_t values = 1;
  for (std::size_t d = 0; d < set->dims.size(); ++d)
    if (d != axis()) values *= set->dims[d];
  return values;
}

std::vector<std::int64_t> RowView::item() const {
  std::vector<std::int64_t> item = set->dims;
  item.erase(item.begin() + static_cast<std::ptrdiff_t>(axis()));
  if (reversed) std::ranges::reverse(item);
  return item;
}

// `open_` has at most kMostOpen files, so that readers of thousands of files do
// not use up the descriptors of the process; the one opened first goes first.
std::string RawReader::read_bytes(const IndexedFile& file, std::int64_t at,
                                  std::span<char> to) {
  auto found = std::ranges::find_if(
      open_, [&](const auto& one) { return one.first == &file; });
  if (found == open_.end()) {
    if (open_.size() == kMostOpen) open_.pop_back();
    Descriptor opened = files::open_file(file.data.path);
    if (!opened) return why_not_opened(errno);
    open_.emplace_front(&file, std::move(opened));
    found = open_.begin();
  }
  return files::read_at(found->second, at, to);
}

RawRows RawReader::read(const RowView& view, std::int64_t first,
                        std::int64_t rows) {
  end_if_stopped(stop_);
  RawRows out;
  const DataSet& set = *view.set;
  if (rows == 0 || view.values() == 0) return out;
  const auto bytes = static_cast<std::size_t>(rows * view.row_bytes());
  if (set.layout == DataSet::Layout::chunked) {
    read_chunked(view, first, rows, out);
    return out;
  }
  out.bytes.resize(bytes);
  switch (set.layout) {
    case DataSet::Layout::contiguous:
    case DataSet::Layout::compact:
      read_contiguous(view, first, rows, out);
      break;
    case DataSet::Layout::mapped:
      read_mapped(view, first, rows, out);
      break;
    default:
      PENSTOCK_ASSERT(false, "no reader is opened for such a data set");
  }
  return out;
}

void RawReader::forget(const RowView& view, std::int64_t first,
                       std::int64_t rows) {
  const DataSet& set = *view.set;
  if (set.layout != DataSet::Layout::chunked || set.filters.empty() ||
      rows == 0 || view.values() == 0)
    return;
  const std::size_t axis = view.axis();
  for_chunks(view, first, rows,
             [&](std::int64_t number, const std::vector<std::int64_t>& corner) {
               const std::int64_t end =
                   std::min(corner[axis] + set.chunk[axis], view.rows());
               if (corner[axis] >= first && end <= first + rows)
                 chunks_->forget({view.set, number});
             });
}

void RawReader::read_contiguous(const RowView& view, std::int64_t first,
                                std::int64_t rows, RawRows& out) {
  const DataSet& set = *view.set;
  auto* to = out.bytes.mutable_data<std::byte>();
  const std::int64_t width = set.type.bytes;
  std::string why;
  auto take = [&](std::int64_t value, std::int64_t values, std::byte* place) {
    const auto bytes = static_cast<std::size_t>(values * width);
    if (set.layout == DataSet::Layout::compact)
      std::memcpy(place, set.data.data() + value * width, bytes);
    else if (set.stored == 0)
      fill(set, place, values);
    else if (why.empty())
      why = read_bytes(*view.file, set.offset + value * width,
                       {reinterpret_cast<char*>(place), bytes});
  };
  if (!view.reversed) {
    take(first * view.values(), rows * view.values(), to);
  } else {
    // A value of each row lies together: such a stretch is read, then spread.
    Bytes stretch;
    stretch.resize(static_cast<std::size_t>(rows * width));
    auto* from = stretch.mutable_data<std::byte>();
    const std::vector<std::int64_t>& dims = set.dims;
    const std::int64_t stretches = view.values();
    for (std::int64_t n = 0; n < stretches; ++n) {
      take(n * view.rows() + first, rows, from);
      // n numbers them in C order of the file; in a row it is reversed.
      std::int64_t rest = n, place = 0, stride = stretches;
      for (std::size_t d = dims.size() - 1; d-- > 0;) {
        stride /= dims[d];
        place += rest % dims[d] * stride;
        rest /= dims[d];
      }
      for (std::int64_t row = 0; row < rows; ++row)
        std::memcpy(to + (row * stretches + place) * width, from + row * width,
                    static_cast<std::size_t>(width));
    }
  }
  if (why.empty()) return;
  std::memset(to, 0, out.bytes.size());
  out.bad.push_back({0, rows, set.path + " cannot be read: " + why});
}

// Rows that no mapping names hold the fill value (H5Pset_virtual). Where two
// mappings name a row, the later one wins, as its rows are written later.
void RawReader::read_mapped(const RowView& view, std::int64_t first,
                            std::int64_t rows, RawRows& out) {
  auto* to = out.bytes.mutable_data<std::byte>();
  fill(*view.set, to, rows * view.values());
  for (const Mapping& mapping : view.set->mappings) {
    const std::int64_t begin = std::max(first, mapping.first);
    const std::int64_t end =
        std::min(first + rows, mapping.first + mapping.rows);
    if (begin >= end) continue;
    const IndexedFile& file = *view.file->file_of(mapping);
    const RowView there{.file = &file, .set = file.index.find(mapping.path)};
    RawRows part =
        read(there, mapping.from + begin - mapping.first, end - begin);
    std::memcpy(to + (begin - first) * view.row_bytes(), part.bytes.data(),
                part.bytes.size());
    for (BadRows& bad : part.bad)
      out.bad.push_back({bad.first + begin - first, bad.end + begin - first,
                         file.data.path + ": " + bad.why});
  }
}

// A chunk that cannot be decoded is not an exception: it becomes zeros with a
// reason, is cached like any other, and its rows are reported as bad. Otherwise
// each reader would decode a broken chunk again for each of its rows. First,
// though, the file is compared with what was indexed: after a change every
// chunk seems damaged, and that has another message.
std::shared_ptr<DecodedChunk> RawReader::decoded(const RowView& view,
                                                 std::int64_t number,
                                                 bool late) {
  const DataSet& set = *view.set;
  const ChunkPlace& place = set.places[static_cast<std::size_t>(number)];
  std::shared_ptr<DecodedChunk> chunk =
      chunks_->empty_chunk(static_cast<std::size_t>(set.chunk_bytes()));
  auto* to = chunk->bytes.mutable_data<std::byte>();
  if (set.filters.empty() && place.bytes == chunk->bytes.size()) {
    chunk->why = read_bytes(*view.file, static_cast<std::int64_t>(place.offset),
                            {reinterpret_cast<char*>(to), chunk->bytes.size()});
  } else {
    stored_.resize(place.bytes);
    chunk->why = read_bytes(*view.file, static_cast<std::int64_t>(place.offset),
                            stored_);
    if (chunk->why.empty())
      chunk->why = decoder_.decode(
          set.filters, place.skipped, std::as_bytes(std::span(stored_)),
          {to, chunk->bytes.size()}, late ? &chunk->apart : nullptr);
  }
  if (chunk->why.empty()) return chunk;
  chunk->apart = 0;
  files::check_unchanged(view.file->data);
  std::memset(to, 0, chunk->bytes.size());
  chunk->why = "chunk " + std::to_string(number) + " of " + set.path +
               ", at byte " + std::to_string(place.offset) +
               " of the file: " + chunk->why;
  return chunk;
}

DecodedChunks::Chunk RawReader::chunk_of(const RowView& view,
                                         std::int64_t number, bool keep) {
  return whole(chunks_->get({view.set, number},
                            keep && !view.set->filters.empty(),
                            [&] { return decoded(view, number, false); }));
}

DecodedChunks::Chunk RawReader::chunk_for_rows(const RowView& view,
                                               std::int64_t number, bool wait) {
  return chunks_->get(
      {view.set, number}, keep_ && !view.set->filters.empty(),
      [&] { return decoded(view, number, late_); }, wait);
}

DecodedChunks::Chunk RawReader::whole(DecodedChunks::Chunk chunk) const {
  if (chunk->apart == 0) return chunk;
  std::shared_ptr<DecodedChunk> made =
      chunks_->empty_chunk(chunk->bytes.size());
  take_together(chunk->bytes.span(), chunk->apart, 0,
                chunk->bytes.size() / chunk->apart,
                made->bytes.mutable_data<std::byte>());
  return made;
}

// Rows ascend, so those of one chunk follow each other: each chunk is fetched
// once. `from / apart` is the number of values before the row in the chunk,
// which is where each of its planes has the row's first byte.
files::Placed RawReader::place(const RowView& view, std::int64_t first,
                               std::span<const std::int64_t> rows,
                               std::span<const std::size_t> places,
                               std::byte* to, bool wait) {
  using files::Placed;
  const DataSet& set = *view.set;
  const auto width = static_cast<std::size_t>(view.row_bytes());
  if (!holds_whole_rows(view) || width == 0) return Placed::no;
  const std::int64_t along = set.chunk[0];
  for (std::size_t at = 0; at < rows.size();) {
    const std::int64_t number = (first + rows[at]) / along;
    if (set.places[static_cast<std::size_t>(number)].bytes == 0)
      return Placed::no;
    const DecodedChunks::Chunk chunk = chunk_for_rows(view, number, wait);
    if (chunk == nullptr) return Placed::later;
    if (!chunk->why.empty() || (chunk->apart != 0 && width % chunk->apart != 0))
      return Placed::no;
    const std::span<const std::byte> bytes = chunk->bytes.span();
    const std::int64_t begin = number * along - first;
    for (; at < rows.size() && rows[at] < begin + along; ++at) {
      const std::size_t from =
          static_cast<std::size_t>(rows[at] - begin) * width;
      std::byte* out = to + places[at] * width;
      if (at + 1 < rows.size() && rows[at + 1] < begin + along)
        fetch(bytes, chunk->apart,
              static_cast<std::size_t>(rows[at + 1] - begin) * width, width);
      if (chunk->apart == 0)
        std::memcpy(out, bytes.data() + from, width);
      else
        take_together(bytes, chunk->apart, from / chunk->apart,
                      width / chunk->apart, out);
    }
  }
  return Placed::yes;
}

void RawReader::read_chunked(const RowView& view, std::int64_t first,
                             std::int64_t rows, RawRows& out) {
  const DataSet& set = *view.set;
  const std::size_t axis = view.axis();
  const std::int64_t along = set.chunk[axis];
  auto needed_again = [&](std::int64_t begin) {
    return keep_ || begin < first ||
           std::min(begin + along, view.rows()) > first + rows;
  };
  // One chunk that holds whole rows is lent unchanged.
  if (holds_whole_rows(view) && first / along == (first + rows - 1) / along) {
    const std::int64_t number = first / along;
    if (set.places[static_cast<std::size_t>(number)].bytes != 0) {
      DecodedChunks::Chunk chunk =
          chunk_of(view, number, needed_again(number * along));
      const auto begin =
          static_cast<std::size_t>((first - number * along) * view.row_bytes());
      out.bytes = Bytes::borrow(
          chunk->bytes.span().subspan(
              begin, static_cast<std::size_t>(rows * view.row_bytes())),
          chunk);
      if (!chunk->why.empty()) out.bad.push_back({0, rows, chunk->why});
      return;
    }
  }
  out.bytes.resize(static_cast<std::size_t>(rows * view.row_bytes()));
  auto* to = out.bytes.mutable_data<std::byte>();
  BoxCopy box(view, first, rows);
  for_chunks(view, first, rows,
             [&](std::int64_t number, const std::vector<std::int64_t>& corner) {
               end_if_stopped(stop_);
               if (set.places[static_cast<std::size_t>(number)].bytes == 0)
                 return box.copy(corner, nullptr, to);
               DecodedChunks::Chunk chunk =
                   chunk_of(view, number, needed_again(corner[axis]));
               box.copy(corner, chunk->bytes.data(), to);
               if (chunk->why.empty()) return;
               const std::int64_t begin = std::max(first, corner[axis]);
               const std::int64_t end =
                   std::min(first + rows, corner[axis] + along);
               out.bad.push_back({begin - first, end - first, chunk->why});
             });
}

}  // namespace penstock::hdf5
