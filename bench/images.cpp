// How many pictures a second does a core decode, crop, resize and normalise?
//
// Photo-like JPEG files of 500 x 375 pixels (noise whose spectrum falls as that
// of photos does, quality 90, 4:2:0) become float32 [3, 224, 224] as an `image`
// field makes them: (a) RandomResizedCrop, flip, normalise; (b) Resize 256,
// CenterCrop 224, normalise; (c) and (d) the same crop from pixels that are
// kept with a longer side of 341, as float32 and as uint8; (e) what is left of
// (c) to the host where a device finishes it: to copy the kept pixels to where
// they are sent from, and to say what the device shall do; (f) what is left of
// (a) to the host where a device decodes: to look at a pixel, and to say so.
// Beside them the floors: (g) the parts of (a) decoded alone, (h) whole
// pictures decoded. (i) is (a) with "parity": "fast". All in turns on one
// thread, of which processor time counts. FOLDER has the files in place of
// those, of the same size.
//
//     bench_images [PICTURES [REPEATS [FOLDER]]]
#include <algorithm>
#include <filesystem>

#include "bench/measure.h"
#include "penstock/base/bytes.h"
#include "penstock/base/file.h"
#include "penstock/transforms/fake/photos.h"
#include "penstock/transforms/image/decoder.h"
#include "penstock/transforms/image/view.h"
#include "penstock/transforms/transforms.h"

namespace penstock {
namespace {

constexpr int kWidth = 500, kHeight = 375;

/// Takes what is queued, as a GPU's stream does, and does nothing.
class Nowhere final : public Stream {
 public:
  void copy(std::byte*, const std::byte*, std::size_t) override {}
  void run(DeviceOperation operation) override {
    const auto& resize = std::get<Resize>(operation);
    taps_.assign(resize.taps.begin(), resize.taps.end());
    windows_.assign(resize.windows.begin(), resize.windows.end());
  }
  void wait(const Event&) override {}
  void step(std::uint64_t) override {}
  void synchronize() override {}

 private:
  Event recorded(bool) override { return {}; }

  std::vector<std::int32_t> taps_;
  std::vector<ResizeWindow> windows_;
};

/// An `image` field over the files.
class Pipeline {
 public:
  Pipeline(const std::vector<std::string>& files, const Image& image,
           bool train)
      : kind_(make_image("x", image)),
        finisher_(kind_->finisher(train)),
        sends_(!image.decode_on_device) {
    Block block;
    block.rows = std::ssize(files);
    Column& column = block.columns.emplace_back();
    column.type = ColumnType::binary;
    for (const std::string& file : files) column.append_text(file);
    auto bound = kind_->bind(
        {.info = {{.name = "image"}}, .types = {column.type}, .at = {0}});
    Faults faults;
    Values values;
    bound->parser()->parse(block, values, faults);
    std::vector<ValueRow> rows;
    for (std::int64_t row = 0; row < block.rows; ++row)
      rows.push_back(values.row(row));
    bound->encoder(Json(), "x")->encode(rows, {.runs = &runs_}, faults);
    PENSTOCK_ASSERT(faults.rows.empty(), "all pictures are good");
    out_.resize(kind_->facts().outputs[0].bytes());
  }
  /// Pictures per second of processor time.
  double rate() {
    const double seconds = cpu_seconds([&] {
      for (std::int64_t row = 0; row < runs_.rows(); ++row) {
        const TensorPlace place{.data = out_.data(), .bytes = out_.size()};
        const StoredRow stored{.run = runs_.row(row), .range = {.sample = row}};
        finisher_->finish(std::span(&stored, 1), {.seed = 1, .epoch = epoch_},
                          std::span(&place, 1));
        PENSTOCK_ASSERT(finisher_->rejected().empty(), "all are good");
      }
    });
    ++epoch_;
    return static_cast<double>(runs_.rows()) / seconds;
  }

  /// The same of what a device finishes, in batches of 32.
  double queued_rate() {
    constexpr std::int64_t kBatch = 32;
    const double seconds = cpu_seconds([&] {
      for (std::int64_t first = 0; first < runs_.rows(); first += kBatch)
        queue(first, std::min(runs_.rows(), first + kBatch));
    });
    ++epoch_;
    return static_cast<double>(runs_.rows()) / seconds;
  }

 private:
  void queue(std::int64_t first, std::int64_t end) {
    std::vector<StoredRow> rows;
    sent_.clear();
    for (std::int64_t row = first; row < end; ++row) {
      const std::span<const std::byte> run = runs_.row(row);
      if (sends_) sent_.append(run.data(), run.size());
      rows.push_back({.run = run, .head = run, .range = {.sample = row}});
    }
    finisher_->inspect(rows);
    PENSTOCK_ASSERT(finisher_->rejected().empty(), "all are good");
    const TensorPlace place{.data = out_.data(), .bytes = out_.size()};
    finisher_->queue({.rows = rows,
                      .key = {.seed = 1, .epoch = epoch_},
                      .to = std::span(&place, 1)},
                     nowhere_);
  }

  std::shared_ptr<const FieldKind> kind_;
  std::unique_ptr<FieldFinisher> finisher_;
  const bool sends_;
  Values runs_;
  std::vector<std::byte> out_;
  Bytes sent_;
  Nowhere nowhere_;
  std::int64_t epoch_ = 0;
};

std::vector<std::string> photos(std::int64_t count) {
  Random random(1, 0, 0, 0);
  std::vector<std::string> files;
  for (std::int64_t at = 0; at < count; ++at)
    files.push_back(photo_file(random, kWidth, kHeight));
  return files;
}

std::vector<std::string> files_below(const char* folder, std::int64_t count) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".jpg") paths.push_back(entry.path());
  std::ranges::sort(paths);
  PENSTOCK_ASSERT(std::ssize(paths) >= count, "a folder of so many files");
  std::vector<std::string> files;
  for (std::int64_t at = 0; at < count; ++at)
    files.push_back(real_files().read(paths[static_cast<std::size_t>(at)]));
  return files;
}

double decoding_rate(const std::vector<std::string>& files, bool parts) {
  static std::unique_ptr<PictureDecoder> decoder = make_decoder();
  static std::int64_t epoch = 0;
  const Image image;
  Pixels pixels;
  const double seconds = cpu_seconds([&] {
    for (std::size_t at = 0; at < files.size(); ++at) {
      const auto bytes = std::as_bytes(std::span(files[at]));
      PictureHeader header;
      read_header(bytes, header);
      const Random random(1, static_cast<std::uint64_t>(epoch), at, 0);
      PictureBox box{0, 0, header.width, header.height};
      if (parts)
        box = view_of(image, Framing::random_resized_crop, header.width,
                      header.height, random, random, true)
                  .crop;
      decoder->decode(bytes, header, box, PictureMode::rgb, pixels);
    }
  });
  ++epoch;
  return static_cast<double>(files.size()) / seconds;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  const std::int64_t pictures = argument(count, arguments, 1, 64);
  const auto repeats = static_cast<int>(argument(count, arguments, 2, 9));
  Json result = result_of("images",
                          "How many pictures a second does a core decode, "
                          "crop, resize and normalise?",
                          count, arguments);
  const std::vector<std::string> files =
      count > 3 ? files_below(arguments[3], pictures) : photos(pictures);
  std::size_t bytes = 0;
  for (const std::string& file : files) bytes += file.size();
  Image image{.train = Framing::random_resized_crop,
              .flip = 0.5,
              .dtype = Dtype::float32,
              .mean = {0.485, 0.456, 0.406},
              .std = {0.229, 0.224, 0.225}};
  Pipeline train(files, image, true), val(files, image, false);
  image.fast = true;
  Pipeline fast(files, image, true);
  image.fast = false;
  image.decode_on_device = true;
  Pipeline coded(files, image, true);
  image.decode_on_device = false;
  image.store_decoded = true;
  image.max_side = 341;
  Pipeline kept(files, image, true);
  image.finish_on_device = true;
  Pipeline queued(files, image, true);
  image.finish_on_device = false;
  image.dtype = Dtype::uint8;
  image.mean.clear();
  image.std.clear();
  Pipeline kept_bytes(files, image, true);
  std::vector<Repeats> rates = in_turns(
      repeats, {[&] { return train.rate(); }, [&] { return val.rate(); },
                [&] { return kept.rate(); }, [&] { return kept_bytes.rate(); },
                [&] { return queued.queued_rate(); },
                [&] { return coded.queued_rate(); },
                [&] { return decoding_rate(files, true); },
                [&] { return decoding_rate(files, false); },
                [&] { return fast.rate(); }});
  result["pictures"] = pictures;
  result["bytes_per_picture"] =
      static_cast<double>(bytes) / static_cast<double>(pictures);
  const char* const names[] = {
      "random_resized_crop", "resize_center",       "kept_float32",
      "kept_uint8",          "kept_for_a_device",   "files_for_a_device",
      "parts_decoded_alone", "whole_decoded_alone", "random_resized_crop_fast"};
  for (std::size_t at = 0; at < rates.size(); ++at)
    result["pictures_per_cpu_second"][names[at]] = rates[at].json();
  result["of_the_floor"] = rates[0].median() / rates[6].median();
  result["fast_of_the_floor"] = rates[8].median() / rates[6].median();
  return finish(result);
}
