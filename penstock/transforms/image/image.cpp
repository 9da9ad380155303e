#include "penstock/transforms/image/image.h"

#include <utility>

#include "penstock/base/utf8.h"
#include "penstock/transforms/image/decoder.h"
#include "penstock/transforms/image/kept_picture.h"
#include "penstock/transforms/image/picture_bytes.h"
#include "penstock/transforms/image/picture_header.h"
#include "penstock/transforms/kinds.h"

// A parsed value is the bytes of the file, also where the column has its path:
// so they are part of the data set's fingerprint. What is stored are these, or
// the picture that they make.

namespace penstock {
namespace {

/// What is wrong with a picture that must have the size that is wanted.
std::string other_size(const Image& image, const PictureHeader& header) {
  if (image.train != Framing::none && image.val != Framing::none) return {};
  if (header.shown_width() == image.width &&
      header.shown_height() == image.height)
    return {};
  return "the picture has " + std::to_string(header.shown_height()) + " x " +
         std::to_string(header.shown_width()) +
         " pixels (height, width), expected " + std::to_string(image.height) +
         " x " + std::to_string(image.width) +
         ", since \"train\" or \"val\" is \"none\"; set it to \"resize\" to "
         "give all pictures one size";
}

/// What is wrong with a picture that has more pixels than are allowed.
std::string too_large(const Image& image, const PictureHeader& header) {
  const std::int64_t pixels = std::int64_t{header.width} * header.height;
  if (pixels <= image.max_pixels) return {};
  const auto bytes = pixels * static_cast<std::int64_t>(bytes_of(image.mode));
  return "the picture has " + std::to_string(header.width) + " x " +
         std::to_string(header.height) + " pixels, " + std::to_string(bytes) +
         " bytes decoded, but \"max_pixels\" allows " +
         std::to_string(image.max_pixels) + " pixels";
}

/// Of what is parsed or stored at once: ends are of 32 bits.
constexpr std::size_t kMostRunBytes = UINT32_MAX;

class Parser final : public FieldParser {
 public:
  /// `decoder`: null where what is damaged is not looked for.
  Parser(const Image& image, std::size_t column, std::int64_t opened_ns,
         std::unique_ptr<PictureDecoder> decoder)
      : image_(image),
        column_(column),
        pictures_(image.folder, opened_ns),
        decoder_(std::move(decoder)) {}

  void parse(const Block& block, Values& out, Faults& faults) override {
    const Column& column = block.columns[column_];
    for (std::int64_t row = 0; row < block.rows; ++row) {
      std::string_view bytes;
      std::string why = pictures_.read(column, row, bytes);
      if (why.empty()) {
        why = fault_of(std::as_bytes(std::span(bytes)));
        if (!why.empty() && !image_.folder.empty())
          why = "names " + shown_text(column.text(row)) + ", which " + why;
      }
      if (why.empty() && out.bytes.size() + bytes.size() > kMostRunBytes)
        why = "has " + std::to_string(bytes.size()) +
              " bytes, and together with the previous pictures more than 4 GiB";
      if (why.empty()) out.bytes.append(bytes.data(), bytes.size());
      if (!why.empty())
        faults.reject({.row = row,
                       .place = image_.column,
                       .why = std::move(why),
                       .next = column.valid(row) ? "" : next_of_missing()});
      out.end_row();
    }
  }
  std::unique_ptr<FieldNotes> take_notes() override {
    return pictures_.take_notes();
  }

 private:
  /// Data sets of Hugging Face may have the path of a file in place of its
  /// bytes.
  std::string next_of_missing() const {
    constexpr std::string_view kBytes = ".bytes";
    const std::string& name = image_.column;
    if (!image_.folder.empty() || !name.ends_with(kBytes)) return {};
    return "if the files are stored next to the table, read their paths: "
           "\"column\": \"" +
           name.substr(0, name.size() - kBytes.size()) +
           ".path\" with \"folder\"";
  }
  std::string fault_of(std::span<const std::byte> bytes) {
    PictureHeader header;
    std::string why = read_header(bytes, header);
    if (why.empty() && image_.mode == PictureMode::index)
      why = why_no_mask(bytes, header);
    if (why.empty()) why = too_large(image_, header);
    if (why.empty()) why = other_size(image_, header);
    if (why.empty() && decoder_ != nullptr)
      why = decoder_->decode(bytes, header, {.width = 1, .height = 1},
                             image_.mode, decoded_);
    return why;
  }

  const Image image_;
  const std::size_t column_;
  PictureBytes pictures_;
  const std::unique_ptr<PictureDecoder> decoder_;
  Pixels decoded_;
};

class Encoder final : public FieldEncoder {
 public:
  explicit Encoder(const Image& image) : image_(image) {}

  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults&) override {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (!image_.store_decoded) {
        out.runs->bytes.append(rows[r].data(), rows[r].size());
      } else {
        keeper().append(rows[r], out.runs->bytes);
      }
      if (out.runs->bytes.size() > kMostRunBytes)
        throw Error(ErrorKind::request,
                    {.code = "images.too_many_bytes",
                     .what = "cannot keep these pictures",
                     .where = "column '" + image_.column + "'",
                     .why = "the pictures of one read have more than 4 GiB",
                     .next = "keep fewer pixels with \"max_side\", or use a "
                             "smaller \"loader.batch_size\""});
      out.runs->end_row();
    }
  }

 private:
  PictureKeeper& keeper() {
    if (keeper_ == nullptr)
      keeper_ = std::make_unique<PictureKeeper>(image_.mode, image_.max_side);
    return *keeper_;
  }

  const Image image_;
  std::unique_ptr<PictureKeeper> keeper_;
};

class BoundImage final : public BoundField {
 public:
  BoundImage(const Image& image, std::size_t column)
      : image_(image), column_(column) {}
  std::unique_ptr<FieldParser> parser() const override {
    return std::make_unique<Parser>(image_, column_, opened_ns_, nullptr);
  }
  std::unique_ptr<FieldParser> checking_parser() const override {
    return std::make_unique<Parser>(image_, column_, opened_ns_,
                                    make_decoder());
  }
  std::unique_ptr<FieldEncoder> encoder(const Json&,
                                        const std::string&) const override {
    return std::make_unique<Encoder>(image_);
  }
  std::unique_ptr<FieldNotes> notes_of(
      std::span<const std::byte> saved) const override {
    return file_notes_of(saved);
  }

 private:
  const Image image_;
  const std::size_t column_;
  const std::int64_t opened_ns_ = file_clock_ns();
};

StoredForm stored_form(const Image& image) {
  StoredForm form{.element_bytes = 1};
  if (image.store_decoded) {
    form.head_bytes = KeptPicture::kHead;
    form.most_rejected = KeptPicture::kMostBad;
  }
  form.read_by_host = image.decode_on_device;
  return form;
}

std::vector<Output> outputs_of(const std::string& name, const Image& image) {
  const auto channels = static_cast<std::int64_t>(bytes_of(image.mode));
  Output picture{.name = name, .dtype = image.dtype};
  if (image.mode == PictureMode::index)
    picture.row_shape = {image.height, image.width};
  else if (image.channels_last)
    picture.row_shape = {image.height, image.width, channels};
  else
    picture.row_shape = {channels, image.height, image.width};
  std::vector<Output> all = {std::move(picture)};
  if (!image.record_draws) return all;
  all.push_back(
      {.name = name + "_draw", .dtype = Dtype::int32, .row_shape = {5}});
  if (image.most_changes() > 0)
    all.push_back({.name = name + "_augment",
                   .dtype = Dtype::float64,
                   .row_shape = {image.most_changes(), kNumbersOfChange}});
  return all;
}

FieldWork work_of(const Image& image) {
  FieldWork work{.making = image.store_decoded ? "transform" : "decode"};
  auto add = [&all = work.cheaper](const char* what) {
    (all += all.empty() ? "" : ", ") += what;
  };
  if (!image.store_decoded)
    add("\"store\": {\"form\": \"decoded\"} decodes once and keeps the pixels "
        "where loader.cache keeps rows");
  if (image.dtype != Dtype::uint8)
    add("\"dtype\": \"uint8\", without \"mean\" and \"std\", lets the model "
        "normalise");
  return work;
}

/// Kept decoded, which spares decoding in each epoch; nullopt: it is so
/// already, or a device shall finish it.
std::optional<LargerKind> larger_form(const std::string& name,
                                      const Image& image) {
  if (image.store_decoded || image.on_device()) return std::nullopt;
  Image decoded = image;
  decoded.store_decoded = true;
  return LargerKind{.kind = make_image(name, std::move(decoded)),
                    .setting = "\"store\": {\"form\": \"decoded\"}",
                    // Of which other pixels are decoded for each crop.
                    .same_bytes = !image.fast};
}

/// The words are of photo-like pictures, as bench/run peers_images measured
/// them (2026-11-27).
std::string costs_of(const Image& image) {
  if (!image.fast) return {};
  return "\"parity\": \"fast\": in photo-like pictures 30 % of the bytes are "
         "exact, and the others differ by 1.5 on average and by at most 14 (45 "
         "dB)";
}

FieldFacts facts_of(const std::string& name, const Image& image) {
  FieldFacts facts{.columns = {{.column = image.column,
                                .as = ReadAs::value,
                                .setting = "fields." + name + ".image.column"}},
                   .stored = stored_form(image),
                   .outputs = outputs_of(name, image),
                   .wants_device = image.on_device(),
                   .work = work_of(image),
                   .recipe = image_settings().shown(image),
                   .built_in = true,
                   .costs = costs_of(image),
                   .larger = larger_form(name, image),
                   .is_larger = image.store_decoded};
  if (!image.folder.empty())
    facts.folder = FolderFacts{.path = image.folder,
                               .setting = "fields." + name + ".image.folder",
                               .source_kind = "images"};
  return facts;
}

class ImageKind final : public FieldKind {
 public:
  ImageKind(std::string name, Image image)
      : FieldKind(facts_of(name, image)),
        name_(std::move(name)),
        image_(std::move(image)) {}

  std::size_t stored_run(ValueRow value) const override {
    return image_.store_decoded
               ? kept_bytes(value, image_.mode, image_.max_side)
               : value.size();
  }
  std::unique_ptr<FieldFinisher> finisher(bool train) const override {
    return make_image_finisher(image_, train);
  }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    const ColumnKind kind = columns.types[0].kind;
    const bool paths = !image_.folder.empty();
    if (kind == ColumnKind::utf8 || (kind == ColumnKind::binary && !paths))
      return std::make_shared<BoundImage>(image_, columns.at[0]);
    throw column_error(
        "fields.not_bytes", "fields." + name_ + ".image.column",
        columns.info[0], columns.types[0],
        paths ? "expected the paths of pictures"
              : "expected the bytes of pictures",
        paths ? "name the column of the paths, or leave \"folder\" out"
              : "name the column of the files themselves");
  }

 private:
  const std::string name_;
  const Image image_;
};

}  // namespace

std::shared_ptr<const FieldKind> make_image(std::string name, Image image) {
  return std::make_shared<ImageKind>(std::move(name), std::move(image));
}

FieldDescriptor image_field() {
  return describe_field<Image, image_settings, make_image>("image");
}

}  // namespace penstock
