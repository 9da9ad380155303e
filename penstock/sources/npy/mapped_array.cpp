#include "penstock/sources/npy/mapped_array.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "penstock/base/sync.h"

namespace penstock::npy {
namespace {

void swap_bytes(std::byte* bytes, std::size_t count, std::size_t width) {
  for (std::size_t at = 0; at < count; ++at, bytes += width)
    std::reverse(bytes, bytes + width);
}

class MappedReader final : public files::ArrayReader {
 public:
  MappedReader(const ArrayLayout& layout, HeldBytes held, std::string damage)
      : layout_(layout), held_(std::move(held)), damage_(std::move(damage)) {}

  Bytes rows(std::int64_t begin, std::int64_t end,
             std::vector<files::BadRows>& bad) override {
    const std::size_t row = layout_.info.row_bytes();
    const auto first = static_cast<std::size_t>(begin);
    const auto count = static_cast<std::size_t>(end - begin);
    if (!damage_.empty()) {
      bad.push_back({0, end - begin, damage_});
      Bytes zeros;
      zeros.resize(count * row);
      std::memset(zeros.mutable_data<std::byte>(), 0, zeros.size());
      return zeros;
    }
    if (!layout_.fortran && !layout_.swapped)
      return Bytes::borrow(held_.bytes.subspan(first * row, count * row),
                           held_.owner);
    Bytes copy;
    if (layout_.fortran)
      turned(first, count, copy);
    else
      copy.append(held_.bytes.data() + first * row, count * row);
    const std::size_t width = size_of(layout_.info.dtype);
    if (layout_.swapped)
      swap_bytes(copy.mutable_data<std::byte>(), copy.size() / width, width);
    return copy;
  }

 private:
  /// Rows of an array in Fortran order: elements of a column lie side by side.
  /// In Fortran order element (row, i, j) lies at row + rows * (i + di * j):
  /// the rows of one element are a run. So each element is walked over all
  /// rows, which reads the file in order and writes with a stride.
  void turned(std::size_t first, std::size_t count, Bytes& to) const {
    const Shape item = layout_.info.item();
    const std::size_t width = size_of(layout_.info.dtype);
    const auto elements = static_cast<std::size_t>(elements_of(item));
    const auto all = static_cast<std::size_t>(layout_.info.rows());
    to.resize(count * elements * width);
    std::byte* out = to.mutable_data<std::byte>();
    Shape index(item.size(), 0);  // in C order: the last changes fastest
    for (std::size_t at = 0; at < elements; ++at) {
      std::size_t place = 0;
      for (std::size_t d = item.size(); d-- > 0;)
        place = place * static_cast<std::size_t>(item[d]) +
                static_cast<std::size_t>(index[d]);
      const std::byte* from =
          held_.bytes.data() + (place * all + first) * width;
      for (std::size_t row = 0; row < count; ++row)
        std::memcpy(out + (row * elements + at) * width, from + row * width,
                    width);
      for (std::size_t d = item.size(); d-- > 0;) {
        if (++index[d] < item[d]) break;
        index[d] = 0;
      }
    }
  }

  const ArrayLayout& layout_;
  const HeldBytes held_;
  const std::string damage_;
};

class PiecedReader final : public files::ArrayReader {
 public:
  PiecedReader(const ArrayLayout& layout, std::unique_ptr<PieceReader> pieces,
               std::string damage)
      : layout_(layout),
        pieces_(std::move(pieces)),
        damage_(std::move(damage)) {}

  Bytes rows(std::int64_t begin, std::int64_t end,
             std::vector<files::BadRows>& bad) override {
    const std::size_t row = layout_.info.row_bytes();
    Bytes bytes;
    bytes.resize(static_cast<std::size_t>(end - begin) * row);
    const std::span<std::byte> to(bytes.mutable_data<std::byte>(),
                                  bytes.size());
    std::string why = damage_;
    if (why.empty())
      why = damage_in([&] {
        pieces_->read(layout_.begin + static_cast<std::size_t>(begin) * row,
                      to);
      });
    if (!why.empty()) {
      bad.push_back({0, end - begin, std::move(why)});
      std::memset(to.data(), 0, to.size());
    }
    const std::size_t width = size_of(layout_.info.dtype);
    if (layout_.swapped) swap_bytes(to.data(), to.size() / width, width);
    return bytes;
  }

 private:
  const ArrayLayout& layout_;
  const std::unique_ptr<PieceReader> pieces_;
  const std::string damage_;
};

class PiecedArray final : public files::RowArray {
 public:
  PiecedArray(ArrayLayout layout, std::function<OpenPieces()> prepare)
      : RowArray(layout.info),
        layout_(std::move(layout)),
        prepare_(std::move(prepare)) {}

  std::unique_ptr<files::ArrayReader> open() const override {
    const Lock lock(mutex_);
    if (!pieces_ && damage_.empty()) {
      OpenPieces pieces;
      damage_ = damage_in([&] { pieces = prepare_(); });
      pieces_ = std::move(pieces);
    }
    return std::make_unique<PiecedReader>(
        layout_, pieces_ ? pieces_() : nullptr, damage_);
  }

 private:
  const ArrayLayout layout_;
  const std::function<OpenPieces()> prepare_;
  mutable Mutex mutex_;
  mutable OpenPieces pieces_ PENSTOCK_GUARDED_BY(mutex_);
  mutable std::string damage_ PENSTOCK_GUARDED_BY(mutex_);  // of all rows
};

// A member of an archive is unpacked when a reader is opened first, under the
// mutex, so that several readers do it once and share the result. `held_` is
// never changed after it was set; readers have copies of it and need no lock.
// An array that cannot be unpacked keeps the reason instead, and all of its
// rows are bad.
class MappedArray final : public files::RowArray {
 public:
  MappedArray(ArrayLayout layout, HeldBytes held,
              std::function<HeldBytes()> unpack)
      : RowArray(layout.info),
        layout_(std::move(layout)),
        held_(std::move(held)),
        unpack_(std::move(unpack)) {
    layout_.fortran = layout_.fortran && layout_.info.shape.size() > 1;
    info_.lent = !layout_.fortran && !layout_.swapped;
  }

  std::unique_ptr<files::ArrayReader> open() const override {
    const Lock lock(mutex_);
    if (held_.owner == nullptr && damage_.empty() && unpack_) {
      HeldBytes held;
      damage_ = damage_in([&] { held = unpack_(); });
      held_ = std::move(held);
    }
    return std::make_unique<MappedReader>(layout_, held_, damage_);
  }

 private:
  ArrayLayout layout_;
  mutable Mutex mutex_;
  mutable HeldBytes held_ PENSTOCK_GUARDED_BY(mutex_);
  mutable std::string damage_ PENSTOCK_GUARDED_BY(mutex_);  // of all rows
  const std::function<HeldBytes()> unpack_;
};

}  // namespace

std::shared_ptr<const files::RowArray> make_mapped_array(ArrayLayout layout,
                                                         HeldBytes held) {
  return std::make_shared<MappedArray>(std::move(layout), std::move(held),
                                       nullptr);
}

std::shared_ptr<const files::RowArray> make_unpacked_array(
    ArrayLayout layout, std::function<HeldBytes()> unpack) {
  return std::make_shared<MappedArray>(std::move(layout), HeldBytes{},
                                       std::move(unpack));
}

std::shared_ptr<const files::RowArray> make_pieced_array(
    ArrayLayout layout, std::function<OpenPieces()> prepare) {
  return std::make_shared<PiecedArray>(std::move(layout), std::move(prepare));
}

}  // namespace penstock::npy
