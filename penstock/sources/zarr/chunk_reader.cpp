#include "penstock/sources/zarr/chunk_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/regular_file.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/zarr/codecs.h"

namespace penstock::zarr {
namespace {

using Data = std::vector<std::byte>;

/// Of decoded chunks that a reader keeps, besides the last one.
constexpr std::size_t kKept = std::size_t{64} << 20;

/// A file that holds a chunk, or several.
class ChunkFile {
 public:
  /// Throws files.changed where a file has changed since `opened_ns`.
  explicit ChunkFile(std::int64_t opened_ns) : opened_ns_(opened_ns) {}
  /// False: no file, and the chunk has the fill value. A chunk without a
  /// file is legitimate, and has the fill value (Zarr V3, "Core specification",
  /// Fill value). It looks just like one that was deleted, hence the look at
  /// the time of its folder.
  bool open(const std::string& path) {
    close();
    number_ = open_regular_file(path.c_str());
    if (number_ < 0 && (errno == ENOENT || errno == ENOTDIR)) {
      if (may_be_gone_since(opened_ns_, path))
        refuse_changed(path, "the file may have been removed");
      return false;
    }
    struct stat found {};
    if (number_ < 0 && (errno == ENXIO || errno == EISDIR))
      npy::damaged(path, why_not_opened(errno));
    if (number_ < 0)  // not damage, which would be bad rows
      files::refuse_path("files.unreadable", path, why_not_opened(errno),
                         "check the permissions of this file");
    if (::fstat(number_, &found) != 0) npy::damaged(path, std::strerror(errno));
    path_ = path;
    size_ = static_cast<std::uint64_t>(found.st_size);
    return true;
  }
  ~ChunkFile() { close(); }
  ChunkFile(const ChunkFile&) = delete;
  ChunkFile& operator=(const ChunkFile&) = delete;

  std::uint64_t size() const { return size_; }
  Data read(std::uint64_t begin, std::uint64_t count) const {
    if (begin > size_ || count > size_ - begin)
      npy::damaged(path_,
                   "the file has " + std::to_string(size_) +
                       " bytes, but its index places a chunk beyond that");
    Data bytes(static_cast<std::size_t>(count));
    for (std::size_t at = 0; at < bytes.size();) {
      const ::ssize_t got =
          ::pread(number_, bytes.data() + at, bytes.size() - at,
                  static_cast<::off_t>(begin + at));
      if (got < 0 && errno == EINTR) continue;
      if (got == 0) check_unchanged();
      if (got <= 0)
        npy::damaged(path_, got < 0 ? std::strerror(errno)
                                    : std::string("the file became shorter"));
      at += static_cast<std::size_t>(got);
    }
    check_unchanged();
    return bytes;
  }

 private:
  void check_unchanged() const {
    struct stat found {};
    if (::fstat(number_, &found) == 0)
      check_unchanged_since(opened_ns_, stamp_of(found), path_);
  }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  const std::int64_t opened_ns_;
  int number_ = -1;
  std::string path_;
  std::uint64_t size_ = 0;
};

// Belongs to one thread. Invariants: `kept_` has decoded chunks by their place
// in the grid, the last one used first, and together (but for one) at most
// kKept bytes; `shard_index_` is that of the shard `shard_place_`, and empty
// where that file does not exist; `begins_` are those of the chunk of texts
// `found_`.
class ChunkedReader final : public files::ArrayReader {
 public:
  explicit ChunkedReader(const ZarrArray& array) : array_(array) {
    for (std::size_t d = 0; d < array_.chunk.size(); ++d)
      shape_.push_back(array_.layout.info.shape[d]);
    chunk_bytes_ = array_.item_bytes() *
                   static_cast<std::size_t>(elements_of(array_.chunk));
    // How large texts are is not known: one chunk alone is kept.
    if (array_.layout.info.items == files::ArrayItems::texts)
      chunk_bytes_ = kKept;
  }

  Bytes rows(std::int64_t begin, std::int64_t end,
             std::vector<files::BadRows>& bad) override {
    const Shape rest(shape_.begin() + 1, shape_.end());
    const std::size_t item = array_.item_bytes();
    Bytes out;
    out.resize(static_cast<std::size_t>((end - begin) * elements_of(rest)) *
               item);
    if (out.size() == 0) return out;
    Shape at(shape_.size(), 0);
    for (at[0] = begin / array_.chunk[0]; at[0] * array_.chunk[0] < end;) {
      read_once(at[0],
                [&] { place(at, begin, end, out.mutable_data<std::byte>()); });
      next(at);
    }
    const std::size_t row = out.size() / static_cast<std::size_t>(end - begin);
    add_damaged(begin, end, bad);
    for (const files::BadRows& lost : bad)
      std::memset(out.mutable_data<std::byte>() +
                      static_cast<std::size_t>(lost.first) * row,
                  0, static_cast<std::size_t>(lost.end - lost.first) * row);
    return array_.packed.unpacks ? files::unpacked(array_.packed, out)
                                 : std::move(out);
  }

  /// A chunk of texts is their number, and of each its length and its bytes.
  void texts(std::int64_t begin, std::int64_t end, Column& to,
             std::vector<files::BadRows>& bad) override {
    for (std::int64_t row = begin; row < end;) {
      const std::int64_t chunk = row / array_.chunk[0];
      const std::int64_t last = std::min(end, (chunk + 1) * array_.chunk[0]);
      read_once(chunk, [&] { add_texts(chunk, row, last, to); });
      while (to.length < last - begin) to.append_text("");
      row = last;
    }
    add_damaged(begin, end, bad);
  }

 private:
  /// What is damaged is not tried again: its rows may be read one by one.
  template <class Read>
  void read_once(std::int64_t chunk_row, const Read& read) {
    if (damage_.contains(chunk_row)) return;
    std::string why = npy::damage_in(read);
    if (!why.empty()) damage_[chunk_row] = std::move(why);
  }
  void add_damaged(std::int64_t begin, std::int64_t end,
                   std::vector<files::BadRows>& bad) const {
    const std::int64_t each = array_.chunk[0];
    for (auto one = damage_.lower_bound(begin / each);
         one != damage_.end() && one->first * each < end; ++one)
      bad.push_back({std::max(begin, one->first * each) - begin,
                     std::min(end, (one->first + 1) * each) - begin,
                     one->second});
  }
  void add_texts(std::int64_t chunk, std::int64_t row, std::int64_t last,
                 Column& to) {
    const std::span<const std::byte> bytes = chunk_at({chunk});
    if (!bytes.empty()) find_texts(chunk, bytes);
    for (; row < last; ++row) {
      std::string_view text = array_.fill_text;
      if (!bytes.empty()) {
        const auto at = static_cast<std::size_t>(row - chunk * array_.chunk[0]);
        if (begins_[at] > bytes.size()) cut_off();  // written anew meanwhile
        std::span<const std::byte> rest = bytes.subspan(begins_[at]);
        text = next_text(rest);
      }
      is_utf8(text) ? to.append_text(text) : to.append_null();
    }
  }
  [[noreturn]] void cut_off() const {
    npy::damaged(array_.place, "a chunk of texts is cut off");
  }
  /// Slices of a chunk begin anywhere in it. numcodecs' VLenUTF8: the number of
  /// texts, then each text's length and its UTF-8 bytes; all numbers are
  /// little-endian uint32. A length says nothing of where later texts are, so
  /// they are walked over once and their places kept.
  void find_texts(std::int64_t chunk, std::span<const std::byte> bytes) {
    if (found_ == chunk) return;
    found_ = -1;
    begins_.clear();
    const std::int64_t rows =
        std::min(array_.chunk[0], shape_[0] - chunk * array_.chunk[0]);
    std::span<const std::byte> rest = bytes;
    if (next_number(rest) < rows) cut_off();
    for (std::int64_t row = 0; row < rows; ++row) {
      begins_.push_back(bytes.size() - rest.size());
      next_text(rest);
    }
    found_ = chunk;
  }
  std::uint32_t next_number(std::span<const std::byte>& rest) const {
    std::uint32_t number = 0;
    if (rest.size() < sizeof(number)) cut_off();
    std::memcpy(&number, rest.data(), sizeof(number));
    rest = rest.subspan(sizeof(number));
    return number;
  }
  std::string_view next_text(std::span<const std::byte>& rest) const {
    const std::uint32_t size = next_number(rest);
    if (rest.size() < size) cut_off();
    const std::string_view text(reinterpret_cast<const char*>(rest.data()),
                                size);
    rest = rest.subspan(size);
    return text;
  }

  /// The next chunk; those of one row of chunks come before the next row.
  void next(Shape& at) const {
    for (std::size_t d = at.size(); d-- > 1;) {
      if ((++at[d]) * array_.chunk[d] < shape_[d]) return;
      at[d] = 0;
    }
    ++at[0];
  }

  /// Copies what a chunk has of these rows. order[i] is the dimension of the
  /// array that is dimension i of a stored chunk, so the last one lies side by
  /// side (`transpose` in version 3, "F" in version 2). Chunks at the edges are
  /// stored whole; what lies beyond the shape is not copied.
  void place(const Shape& at, std::int64_t begin, std::int64_t end,
             std::byte* out) {
    const Data& chunk = chunk_at(at);
    const std::size_t dims = at.size(), item = array_.item_bytes();
    // Of each dimension: how far apart elements lie in the chunk and in `out`.
    std::vector<std::size_t> in_step(dims, item), out_step(dims, item);
    for (std::size_t i = dims; i-- > 1;)
      in_step[array_.order[i - 1]] =
          in_step[array_.order[i]] *
          static_cast<std::size_t>(array_.chunk[array_.order[i]]);
    for (std::size_t d = dims; d-- > 1;)
      out_step[d - 1] = out_step[d] * static_cast<std::size_t>(shape_[d]);
    std::vector<std::int64_t> first(dims), count(dims);
    std::size_t from = 0, to = 0;
    for (std::size_t d = 0; d < dims; ++d) {
      const std::int64_t start = at[d] * array_.chunk[d];
      const std::int64_t least = d == 0 ? std::max(start, begin) : start;
      const std::int64_t most =
          std::min(start + array_.chunk[d], d == 0 ? end : shape_[d]);
      count[d] = most - least;
      if (count[d] <= 0) return;
      from += static_cast<std::size_t>(least - start) * in_step[d];
      to += static_cast<std::size_t>(d == 0 ? least - begin : least) *
            out_step[d];
    }
    copy(chunk.data() + from, out + to, count, in_step, out_step, 0);
  }

  void copy(const std::byte* from, std::byte* to,
            const std::vector<std::int64_t>& count,
            const std::vector<std::size_t>& in_step,
            const std::vector<std::size_t>& out_step, std::size_t d) const {
    const std::size_t item = array_.item_bytes();
    const auto many = static_cast<std::size_t>(count[d]);
    if (d + 1 == count.size() && in_step[d] == item) {
      std::memcpy(to, from, many * item);
      return;
    }
    for (std::size_t i = 0; i < many;
         ++i, from += in_step[d], to += out_step[d])
      if (d + 1 == count.size())
        std::memcpy(to, from, item);
      else
        copy(from, to, count, in_step, out_step, d + 1);
  }

  const Data& chunk_at(const Shape& at) {
    for (auto one = kept_.begin(); one != kept_.end(); ++one)
      if (one->first == at) {
        kept_.splice(kept_.begin(), kept_, one);
        return kept_.front().second;
      }
    while (!kept_.empty() && (kept_.size() + 1) * chunk_bytes_ > kKept)
      kept_.pop_back();
    kept_.emplace_front(at, read_chunk(at));
    return kept_.front().second;
  }

  Data read_chunk(const Shape& at) {
    std::string place;
    std::optional<Data> packed = packed_at(at, place);
    const bool texts = array_.layout.info.items == files::ArrayItems::texts;
    if (texts)
      return packed ? unpack_any(std::move(*packed), array_.codecs, place)
                    : Data();
    if (!packed) {
      Data filled(chunk_bytes_);
      const std::size_t item = array_.fill.size();
      for (std::size_t b = 0; b + item <= filled.size() && item > 0; b += item)
        std::memcpy(filled.data() + b, array_.fill.data(), item);
      return filled;
    }
    Data chunk = unpack(std::move(*packed), array_.codecs, chunk_bytes_, place);
    const std::size_t width =
        array_.layout.info.items == files::ArrayItems::letters
            ? sizeof(char32_t)
            : size_of(array_.packed.stored);
    if (array_.layout.swapped)
      for (std::size_t b = 0; b + width <= chunk.size(); b += width)
        std::reverse(chunk.begin() + static_cast<std::ptrdiff_t>(b),
                     chunk.begin() + static_cast<std::ptrdiff_t>(b + width));
    return chunk;
  }

  /// The bytes of a chunk as they are stored.
  std::optional<Data> packed_at(const Shape& at, std::string& place) {
    Shape shard = at;
    std::size_t inner = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
      const std::int64_t each = array_.shard[d] / array_.chunk[d];
      shard[d] = at[d] / each;
      inner = inner * static_cast<std::size_t>(each) +
              static_cast<std::size_t>(at[d] % each);
    }
    place = array_.place + "/" + name_of_file(shard);
    if (!array_.sharded) {
      ChunkFile file(array_.opened_ns);
      if (!file.open(place)) return std::nullopt;
      return file.read(0, file.size());
    }
    if (place != shard_place_) open_shard(place);
    if (shard_index_.empty()) return std::nullopt;
    const std::uint64_t begin = shard_index_[2 * inner];
    const std::uint64_t count = shard_index_[2 * inner + 1];
    constexpr std::uint64_t kNone = ~std::uint64_t{0};
    if (begin == kNone && count == kNone) return std::nullopt;
    return shard_.read(begin, count);
  }

  // Zarr V3, codec "sharding_indexed": the index is an array of (offset,
  // nbytes), both uint64, for each inner chunk in C order, encoded by
  // index_codecs; two numbers of all bits set say that the chunk is absent. It
  // stands at the end of the shard, or at its start. Its encoded size must be
  // known beforehand, so only codecs of a fixed size (crc32c) are possible.
  void open_shard(const std::string& place) {
    shard_place_.clear();  // a damaged index is not one without chunks
    shard_index_.clear();
    if (!shard_.open(place)) {
      shard_place_ = place;
      return;
    }
    std::size_t chunks = 1;
    for (std::size_t d = 0; d < array_.chunk.size(); ++d)
      chunks *= static_cast<std::size_t>(array_.shard[d] / array_.chunk[d]);
    const std::size_t bytes = chunks * 2 * sizeof(std::uint64_t);
    std::uint64_t stored = bytes;
    for (const Codec& codec : array_.index_codecs) {
      if (codec.kind != Codec::Kind::crc32c)
        npy::damaged(place, "the index of its shards is compressed");
      stored += sizeof(std::uint32_t);
    }
    if (stored > shard_.size()) npy::damaged(place, "the shard has no index");
    const Data index = unpack(
        shard_.read(array_.index_at_start ? 0 : shard_.size() - stored, stored),
        array_.index_codecs, bytes, place);
    shard_index_.resize(2 * chunks);
    std::memcpy(shard_index_.data(), index.data(), bytes);
    if (array_.index_swapped)
      for (std::uint64_t& number : shard_index_)
        number = __builtin_bswap64(number);
    shard_place_ = place;
  }

  std::string name_of_file(const Shape& at) const {
    std::string name = array_.prefix;
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (d > 0) name += array_.separator;
      name += std::to_string(at[d]);
    }
    return name;
  }

  const ZarrArray& array_;
  Shape shape_;
  std::size_t chunk_bytes_ = 0;
  std::list<std::pair<Shape, Data>> kept_;
  /// Why rows cannot be read, by the first number of their chunks.
  std::map<std::int64_t, std::string> damage_;
  /// Where the texts of a chunk begin, with their lengths.
  std::int64_t found_ = -1;
  std::vector<std::size_t> begins_;
  ChunkFile shard_{array_.opened_ns};
  std::string shard_place_;
  std::vector<std::uint64_t> shard_index_;
};

class ChunkedArray final : public files::RowArray {
 public:
  explicit ChunkedArray(ZarrArray array)
      : RowArray(array.layout.info), array_(std::move(array)) {}
  std::unique_ptr<files::ArrayReader> open() const override {
    return std::make_unique<ChunkedReader>(array_);
  }

 private:
  const ZarrArray array_;
};

}  // namespace

std::shared_ptr<const files::RowArray> make_chunked_array(ZarrArray array) {
  return std::make_shared<ChunkedArray>(std::move(array));
}

}  // namespace penstock::zarr
