// How many pictures a second does a device decode, beside the host?
//
// Photo-like JPEG files of 500 x 375 pixels (4:2:0, quality 90) are kept as
// files in memory and come out of a loader as batches of float32 [3, 224, 224]:
// RandomResizedCrop, flip, normalise. (a) Decoded by the workers; (b) with
// "decode": "device", by nvJPEG where the device is a GPU, and finished there.
// In turns, by the wall, with the processor time that was spent beside. How far
// the bytes of a batch as uint8 are from those of the host is said, too.
//
//     bench_decode [DEVICE [BATCH [BATCHES [REPEATS [WORKERS]]]]]
//
// WORKERS 0: as many as the machine has processors.
#include <cstdlib>
#include <fstream>
#include <thread>

#include "bench/measure.h"
#include "penstock/job/job.h"
#include "penstock/transforms/fake/photos.h"

namespace penstock {
namespace {

constexpr int kDifferent = 64;  // photos; each is there several times

/// A folder of them, which is removed at the end.
class Photos {
 public:
  explicit Photos(std::int64_t pictures)
      : folder_(std::filesystem::temp_directory_path() /
                ("penstock_decode_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_ / "one");
    Random random(1, 0, 0, 0);
    std::vector<std::string> files;
    for (int i = 0; i < kDifferent; ++i)
      files.push_back(photo_file(random, 500, 375));
    for (std::int64_t i = 0; i < pictures; ++i)
      std::ofstream(folder_ / "one" / (std::to_string(i) + ".jpg"),
                    std::ios::binary)
          << files[static_cast<std::size_t>(i % kDifferent)];
  }
  ~Photos() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Photos(const Photos&) = delete;
  Photos& operator=(const Photos&) = delete;

  Job job(const char* decode, bool floats, std::int64_t batch,
          std::int64_t workers) const {
    Json document = Json::parse(
        R"({"source": {"kind": "images"}, "fields": {"x": {"image": {}}},
            "loader": {"cache": "ram"}})",
        "bench");
    document["source"]["path"] = folder_.string();
    document["loader"]["batch_size"] = batch;
    document["loader"]["workers"] = workers;
    Json& image = document["fields"]["x"]["image"];
    image["decode"] = decode;
    image["train"] = "random_resized_crop";
    image["flip"] = 0.5;
    if (floats) {
      image["dtype"] = "float32";
      for (double mean : {0.485, 0.456, 0.406}) image["mean"].push_back(mean);
      for (double std : {0.229, 0.224, 0.225}) image["std"].push_back(std);
    }
    return parse_job(document);
  }

 private:
  const std::filesystem::path folder_;
};

/// A loader of such a job.
class Feed {
 public:
  Feed(const Job& job, Device& device)
      : stream_(device.make_stream()),
        dataset_(TableDataset::prepare(
            dataset_options(job, device.memory_kind()), device)),
        loader_(dataset_, loader_options(job, Side::train), device),
        device_(device) {}

  const std::string& where() const { return dataset_->plan().notes.at(0); }
  bool has_notes() const { return !dataset_->plan().notes.empty(); }
  /// Pictures per second.
  double rate(std::int64_t batches) {
    // Those that were made while the other one was measured.
    constexpr int kAhead = 8;
    for (int i = 0; i < kAhead; ++i) loader_.next(*stream_);
    std::int64_t pictures = 0;
    const double cpu_before = process_cpu_seconds();
    const double seconds = wall_seconds([&] {
      for (std::int64_t i = 0; i < batches; ++i) {
        std::optional<Batch> batch = loader_.next(*stream_);
        PENSTOCK_ASSERT(batch, "a loader for training has no end");
        pictures += batch->tensors()[0].view.shape[0];
      }
      stream_->synchronize();
    });
    cpu_ms_.add(1e3 * (process_cpu_seconds() - cpu_before) /
                static_cast<double>(pictures));
    return static_cast<double>(pictures) / seconds;
  }
  const Repeats& cpu_ms_each() const { return cpu_ms_; }
  /// The bytes of a batch.
  std::vector<std::uint8_t> bytes() {
    std::optional<Batch> batch = loader_.next(*stream_);
    const TensorView& view = batch->tensors()[0].view;
    Buffer back = device_.allocate_pinned(view.bytes());
    stream_->copy(back.data(), view.data, back.size());
    stream_->synchronize();
    const auto* first = reinterpret_cast<const std::uint8_t*>(back.data());
    return {first, first + back.size()};
  }

 private:
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<const TableDataset> dataset_;
  Loader loader_;
  Device& device_;
  Repeats cpu_ms_;
};

double difference(const std::vector<std::uint8_t>& a,
                  const std::vector<std::uint8_t>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::abs(int{a[i]} - int{b[i]});
  return sum / static_cast<double>(a.size());
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
  using namespace penstock;
  const std::string kind = count > 1 ? arguments[1] : "cpu";
  const std::int64_t batch = argument(count, arguments, 2, 128);
  const std::int64_t batches = argument(count, arguments, 3, 64);
  const auto repeats = static_cast<int>(argument(count, arguments, 4, 5));
  std::int64_t workers = argument(count, arguments, 5, 0);
  if (workers == 0) workers = std::thread::hardware_concurrency();
  Json result =
      result_of("decode",
                "How many pictures a second does a device decode, beside the "
                "host?",
                count, arguments);
  set_log_level(LogLevel::info);  // whether nvJPEG uses engines
  std::unique_ptr<Device> device = open_device({.kind = kind});
  result["device"] = device->name();
  result["batch"] = batch;
  result["workers"] = workers;
  const Photos photos(std::max<std::int64_t>(4 * batch, 512));
  {
    Feed host(photos.job("host", false, batch, 1), *device);
    Feed there(photos.job("device", false, batch, 1), *device);
    result["bytes_differ_by_mean"] = difference(host.bytes(), there.bytes());
  }
  Feed host(photos.job("host", true, batch, workers), *device);
  Feed there(photos.job("device", true, batch, workers), *device);
  if (there.has_notes()) result["note"] = there.where();
  const std::vector<Repeats> rates =
      in_turns(repeats, {[&] { return host.rate(batches); },
                         [&] { return there.rate(batches); }});
  for (std::size_t at : {0U, 1U}) {
    const char* name =
        at == 0 ? "decoded_by_the_host" : "decoded_by_the_device";
    result["pictures_per_second"][name] = rates[at].json();
    result["cpu_ms_per_picture"][name] =
        (at == 0 ? host : there).cpu_ms_each().json();
  }
  result["as_fast"] = rates[1].median() / rates[0].median();
  return finish(result);
}
