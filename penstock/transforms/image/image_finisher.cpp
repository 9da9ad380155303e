#include <algorithm>
#include <cstring>
#include <optional>

#include "penstock/base/held_memory.h"
#include "penstock/transforms/image/augment/erase.h"
#include "penstock/transforms/image/device_decode.h"
#include "penstock/transforms/image/device_resize.h"
#include "penstock/transforms/image/image.h"
#include "penstock/transforms/image/kept_picture.h"
#include "penstock/transforms/image/pixel_writer.h"
#include "penstock/transforms/image/resize.h"
#include "penstock/transforms/image/view.h"

namespace penstock {
namespace {

class ImageFinisher final : public FieldFinisher {
 public:
  ImageFinisher(const Image& image, bool train)
      : image_(image),
        framing_(train ? image.train : image.val),
        train_(train),
        augments_(train ? image.augments : std::vector<Augment>()),
        writer_(image) {
    // Devices have the exact weights, and give the same bytes.
    if (image.fast && !image.store_decoded)
      columns_.bits = rows_.bits = ResizeTaps::kFewBits;
  }

  void finish(std::span<const StoredRow> rows, const DrawKey& key,
              std::span<const TensorPlace> to) override {
    rejected_.clear();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::string why = image_.store_decoded
                            ? finish_kept(rows[r], key, to, r)
                            : finish_encoded(rows[r], key, to, r);
      if (why.empty()) continue;
      for (const TensorPlace& place : to)
        std::memset(place.row(r), 0, place.bytes);
      reject(r, std::move(why));
    }
    held_.change_to(stored_.held() + turned_.held() + resizer_.held() +
                    resized_.held());
  }
  std::span<const RowFault> rejected() const override { return rejected_; }

  void inspect(std::span<const StoredRow> rows) override {
    rejected_.clear();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::string why = image_.decode_on_device ? damage_of(rows[r].head)
                                                : KeptPicture(rows[r].head).why;
      if (!why.empty()) reject(r, std::move(why));
    }
  }
  std::optional<QueueNeeds> queue_needs(MemoryKind memory) const override {
    if (!image_.on_device()) return std::nullopt;
    if (memory != MemoryKind::cuda) return QueueNeeds();
    StreamBytes bytes{.device = kResizeBytes, .pinned = 2 * kResizeBytes};
    if (image_.decode_on_device) {
      bytes.device += kHostDecodedBytes;
      bytes.pinned += kHostDecodedBytes;
      bytes.of_all_streams = kDecoders * (kDecodedBytes + kDecoderBytes);
    }
    return QueueNeeds{.stream_bytes = bytes};
  }
  void queue(const QueuedRows& rows, Stream& stream) override {
    if (on_device_ == nullptr)
      on_device_ = std::make_unique<DeviceResize>(image_);
    const TensorPlace& to = rows.to[0];
    on_device_->begin(to.data);
    for (std::size_t r = 0; r < rows.rows.size(); ++r) {
      const StoredRow& row = rows.rows[r];
      const std::int64_t at =
          to.starts.empty() ? static_cast<std::int64_t>(r) : to.starts[r];
      const ResizeWindow of =
          image_.decode_on_device ? coded_picture(row) : kept_picture(row);
      if (of.zeros()) {  // whoever asks for it knows
        on_device_->add_none(at);
        continue;
      }
      const View view = draw(row, rows.key, of.width, of.height);
      on_device_->add(at, of, view, columns_, rows_);
    }
    on_device_->run(stream);
  }

 private:
  void reject(std::size_t row, std::string why) {
    rejected_.push_back({.row = static_cast<std::int64_t>(row),
                         .place = image_.column,
                         .why = std::move(why)});
  }

  /// What finish() would say of a file, which does not depend on the part that
  /// is decoded.
  std::string damage_of(std::span<const std::byte> file) {
    if (decoder_ == nullptr) decoder_ = make_decoder();
    PictureHeader header;
    std::string why = read_header(file, header);
    if (!why.empty()) return why;
    return decoder_->decode(file, header, {.width = 1, .height = 1},
                            image_.mode, stored_);
  }

  /// Where a device finds the picture of a row, and its size; nowhere if none
  /// exists.
  static ResizeWindow kept_picture(const StoredRow& row) {
    const KeptPicture kept(row.head);
    if (!kept.why.empty()) return {};
    return {.image = row.run.data() + KeptPicture::kHead,
            .height = kept.height,
            .width = kept.width};
  }
  static ResizeWindow coded_picture(const StoredRow& row) {
    PictureHeader header;
    if (!read_header(row.head, header).empty()) return {};
    return {.file = row.head,
            .host_decodes = !device_decodes(row.head, header),
            .height = header.shown_height(),
            .width = header.shown_width()};
  }

  View draw(const StoredRow& row, const DrawKey& key, int width, int height) {
    const View view =
        view_of(image_, framing_, width, height, key.random(row, kCropDraws),
                key.random(row, kFlipDraws), train_);
    make_taps(image_.interpolation, view.columns, columns_);
    make_taps(image_.interpolation, view.rows, rows_);
    return view;
  }

  std::string finish_encoded(const StoredRow& row, const DrawKey& key,
                             std::span<const TensorPlace> to, std::size_t r) {
    if (decoder_ == nullptr) decoder_ = make_decoder();
    PictureHeader header;
    std::string why = read_header(row.run, header);
    if (!why.empty()) return why;
    View view = draw(row, key, header.shown_width(), header.shown_height());
    const std::array<std::int32_t, 5> draws = draws_of(view);
    const int shrink = image_.fast ? shrink_of(header, view) : 1;
    if (shrink > 1) shrink_by(shrink, header, view);
    // Nothing but what the taps use is decoded.
    const int left = columns_.begin(), top = rows_.begin();
    const PictureBox shown{.left = view.crop.left + left,
                           .top = view.crop.top + top,
                           .width = columns_.end() - left,
                           .height = rows_.end() - top};
    why = decoder_->decode(row.run, header, header.stored(shown),
                           {image_.mode, image_.fast, shrink}, stored_);
    if (!why.empty()) return why;
    const bool turned = header.orientation != 1;
    if (turned) turn(stored_, header.orientation, turned_);
    write(row, key, (turned ? turned_ : stored_).view(), left, top, view, to,
          r);
    record(draws, to, r);
    return {};
  }

  /// How much smaller a JPEG file may be decoded, so that it need not be
  /// enlarged afterwards.
  int shrink_of(const PictureHeader& header, const View& view) const {
    if (header.format != PictureFormat::jpeg || framing_ == Framing::none)
      return 1;
    int shrink = 1;
    while (shrink < 8 && view.crop.width >= 2 * shrink * view.columns.out &&
           view.crop.height >= 2 * shrink * view.rows.out)
      shrink *= 2;
    return shrink;
  }

  /// The same part of the picture that is decoded smaller.
  void shrink_by(int shrink, PictureHeader& header, View& view) {
    auto axis = [&](int begin, int size, int whole, ResizeAxis& to) {
      const auto by = static_cast<float>(shrink);
      to.begin = static_cast<float>(begin) / by;
      to.end = static_cast<float>(begin + size) / by;
      to.size = (whole + shrink - 1) / shrink;
      to.end = std::min(to.end, static_cast<float>(to.size));
    };
    axis(view.crop.left, view.crop.width, header.shown_width(), view.columns);
    axis(view.crop.top, view.crop.height, header.shown_height(), view.rows);
    header.width = (header.width + shrink - 1) / shrink;
    header.height = (header.height + shrink - 1) / shrink;
    view.crop = {0, 0, header.shown_width(), header.shown_height()};
    make_taps(image_.interpolation, view.columns, columns_);
    make_taps(image_.interpolation, view.rows, rows_);
  }

  std::string finish_kept(const StoredRow& row, const DrawKey& key,
                          std::span<const TensorPlace> to, std::size_t r) {
    const KeptPicture kept(row.run);
    if (!kept.why.empty()) return kept.why;
    const View view = draw(row, key, kept.width, kept.height);
    const int left = columns_.begin(), top = rows_.begin();
    const PictureBox used{.left = view.crop.left + left,
                          .top = view.crop.top + top,
                          .width = columns_.end() - left,
                          .height = rows_.end() - top};
    write(row, key, kept_part(kept, used, row.run), left, top, view, to, r);
    record(draws_of(view), to, r);
    return {};
  }

  /// Where it is kept, in `run`; a copy where nothing may be read behind it.
  PixelView kept_part(const KeptPicture& kept, const PictureBox& box,
                      std::span<const std::byte> run) {
    const PixelView part = kept.part(box, image_.mode);
    const auto* end = reinterpret_cast<const std::byte*>(
        part.row(part.height - 1) + part.row_bytes());
    if (run.data() + run.size() - end >= std::ptrdiff_t{PixelView::kReadBehind})
      return part;
    stored_.reshape(part.width, part.height, part.mode);
    for (int y = 0; y < part.height; ++y)
      std::memcpy(stored_.row(y), part.row(y), part.row_bytes());
    return stored_.view();
  }

  /// `pixels` begins at column `left` and row `top` of the crop.
  void write(const StoredRow& row, const DrawKey& key, const PixelView& pixels,
             int left, int top, const View& view,
             std::span<const TensorPlace> to, std::size_t r) {
    resizer_.resize(pixels, left, top, columns_, rows_, resized_);
    if (augments_.empty()) {
      writer_.write(resized_, view.flipped, to[0].row(r));
    } else {
      if (view.flipped) mirror(resized_);
      augment(row, key, to[0].row(r));
    }
  }

  void record(const std::array<std::int32_t, 5>& draws,
              std::span<const TensorPlace> to, std::size_t r) const {
    if (!image_.record_draws) return;
    std::memcpy(to[1].row(r), draws.data(), sizeof(draws));
    if (image_.most_changes() > 0)
      record_changes(reinterpret_cast<double*>(to[2].row(r)));
  }

  void augment(const StoredRow& row, const DrawKey& key, std::byte* to) {
    draw_changes(augments_, resized_.width, resized_.height,
                 key.random(row, kAugmentDraws), changes_);
    for (PixelChange& change : changes_)
      if (image_.mode != PictureMode::index) {
        changer_.apply(change, resized_);
      } else if (moves(change.change)) {
        change.interpolation = Interpolation::nearest;
        changer_.apply(change, resized_);
      } else {
        change = {};
      }
    writer_.write(resized_, false, to);
    std::uint64_t erased = 0;
    for (const PixelChange& change : changes_)
      if (change.change == Change::erase)
        erase(image_, augments_[change.entry], change,
              key.random(row, kEraseDraws + erased++), to);
  }

  void record_changes(double* to) const {
    const auto most = static_cast<std::size_t>(image_.most_changes());
    std::fill_n(to, most * kNumbersOfChange, 0.0);
    for (const PixelChange& change : changes_) {
      *to++ = static_cast<double>(change.change);
      to = std::ranges::copy(change.numbers, to).out;
    }
  }

  const Image image_;
  const Framing framing_;
  const bool train_;
  const std::vector<Augment> augments_;  // of this side
  const PixelWriter writer_;
  std::unique_ptr<PictureDecoder> decoder_;  // made when it is needed
  Resizer resizer_;
  std::unique_ptr<DeviceResize> on_device_;  // made when it is needed
  PixelChanger changer_;
  std::vector<RowFault> rejected_;
  MemoryCharge held_{HeldFor::batches, HeldIn::host, 0};
  // Of the row at hand, scratch.
  ResizeTaps columns_, rows_;
  Pixels stored_, turned_, resized_;
  std::vector<PixelChange> changes_;
};

}  // namespace

std::unique_ptr<FieldFinisher> make_image_finisher(const Image& image,
                                                   bool train) {
  return std::make_unique<ImageFinisher>(image, train);
}

}  // namespace penstock
