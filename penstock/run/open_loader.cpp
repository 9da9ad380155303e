#include "penstock/run/open_loader.h"

namespace penstock {
namespace {

LoaderOptions options_of(const Job& job, const Dataset& dataset) {
  LoaderOptions options = loader_options(job, Side::train);
  options.batches = steps_in_all(job, order_of(options, dataset));
  return options;
}

class OpenJobLoader : public JobLoader {
 public:
  explicit OpenJobLoader(const Job& job)
      : device_(open_device(job.device)),
        dataset_(Dataset::prepare(dataset_options(job), *device_)),
        stream_(device_->make_stream()),
        loader_(dataset_, options_of(job, *dataset_), *device_) {}

  std::optional<Batch> next() override { return loader_.next(*stream_); }
  Stream& stream() override { return *stream_; }
  Device& device() override { return *device_; }
  const Dataset& dataset() const override { return *dataset_; }
  const Loader& loader() const override { return loader_; }

 private:
  std::unique_ptr<Device> device_;
  std::shared_ptr<const Dataset> dataset_;
  std::unique_ptr<Stream> stream_;
  Loader loader_;
};

}  // namespace

std::unique_ptr<JobLoader> open_loader(const Job& job) {
  return std::make_unique<OpenJobLoader>(job);
}

}  // namespace penstock
