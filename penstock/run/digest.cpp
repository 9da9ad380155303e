#include "penstock/run/digest.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace penstock {
namespace {

/// The tensors of a batch in host memory, so that they can be read.
class HostCopy {
 public:
  HostCopy(const Batch& batch, Stream& stream) {
    tensors_.assign(batch.tensors().begin(), batch.tensors().end());
    std::size_t bytes = 0;
    for (const NamedTensor& tensor : tensors_) bytes += tensor.view.bytes();
    memory_.resize(bytes);
    std::size_t at = 0;
    for (NamedTensor& tensor : tensors_) {
      std::size_t size = tensor.view.bytes();
      stream.copy(memory_.data() + at, tensor.view.data, size);
      tensor.view.data = memory_.data() + at;
      tensor.view.memory = MemoryKind::cpu;
      at += size;
    }
    stream.synchronize();
  }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  std::span<const std::byte> bytes() const { return memory_; }

 private:
  std::vector<NamedTensor> tensors_;
  std::vector<std::byte> memory_;
};

Json describe(const Batch& batch, const HostCopy& copy,
              const Dataset& dataset) {
  Json json;
  json["epoch"] = batch.at().epoch;
  json["step"] = batch.at().step;
  json["keys"] = Json::Array{};
  for (SampleId id : batch.ids())
    json["keys"].push_back(id < 0 ? Json() : dataset.keys().json(id));
  Sha256 order, bytes;
  order.add(std::as_bytes(batch.ids()));
  bytes.add(copy.bytes());
  json["order_digest"] = order.hex();
  json["bytes_digest"] = bytes.hex();
  return json;
}

}  // namespace

std::string safetensors(const std::vector<NamedTensor>& tensors) {
  Json header{Json::Object{}};
  std::size_t at = 0;
  for (const NamedTensor& tensor : tensors) {
    Json& entry = header[tensor.name];
    entry["dtype"] = tensor.view.dtype == Dtype::float32   ? "F32"
                     : tensor.view.dtype == Dtype::float64 ? "F64"
                                                           : "I64";
    entry["shape"] = Json::Array{};
    for (std::int64_t extent : tensor.view.shape)
      entry["shape"].push_back(extent);
    entry["data_offsets"].push_back(at);
    at += tensor.view.bytes();
    entry["data_offsets"].push_back(at);
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::uint64_t length = text.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  file += text;
  for (const NamedTensor& tensor : tensors)
    file.append(reinterpret_cast<const char*>(tensor.view.data),
                tensor.view.bytes());
  return file;
}

void look_at_batches(const Job& job, const BatchQuery& query,
                     const std::function<void(const Json&)>& each) {
  std::unique_ptr<Device> device = open_device(job.device);
  std::shared_ptr<const Dataset> dataset =
      Dataset::prepare(dataset_options(job), *device);
  LoaderOptions options = loader_options(job, query.side);
  std::int64_t end =
      std::min(query.end_step, steps_per_epoch(order_of(options, *dataset)));
  options.rank = query.rank;
  options.start = {.epoch = query.epoch, .step = query.first_step};
  options.batches = std::max<std::int64_t>(0, end - query.first_step);
  if (options.batches == 0) return;
  if (!query.out.empty()) real_files().make_folders(query.out);
  std::unique_ptr<Stream> stream = device->make_stream();
  Loader loader(dataset, options, *device);
  while (std::optional<Batch> batch = loader.next(*stream)) {
    HostCopy copy(*batch, *stream);
    if (!query.out.empty()) {
      char name[64];
      std::snprintf(name, sizeof(name), "epoch-%06ld-step-%09ld.safetensors",
                    long(batch->at().epoch), long(batch->at().step));
      real_files().write_atomic(std::filesystem::path(query.out) / name,
                                safetensors(copy.tensors()));
    }
    each(describe(*batch, copy, *dataset));
  }
}

}  // namespace penstock
