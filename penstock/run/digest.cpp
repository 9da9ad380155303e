#include "penstock/run/digest.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "penstock/run/folder.h"
#include "penstock/run/prepare.h"
#include "penstock/run/safetensors.h"

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
              const TableDataset& dataset) {
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

std::string file_of(Position at) {
  char name[80];
  std::snprintf(name, sizeof(name), "epoch-%06ld-step-%09ld.safetensors",
                long(at.epoch), long(at.step));
  return name;
}

void look(const Job& job, const BatchQuery& query,
          const std::function<void(const Json&)>& each) {
  std::unique_ptr<Device> device = open_device(job.device);
  std::shared_ptr<const TableDataset> dataset =
      prepare_rows(job, *device, {.stop = query.stop});
  LoaderOptions options = loader_options(job, query.side);
  std::int64_t end =
      std::min(query.end_step, steps_per_epoch(order_of(options, *dataset)));
  options.rank = query.rank;
  options.start = {.epoch = query.epoch, .step = query.first_step};
  options.batches = std::max<std::int64_t>(0, end - query.first_step);
  if (options.batches == 0) return;
  std::optional<OutputFolder> out;
  if (!query.out.empty()) out.emplace(real_files(), query.out, "--out");
  std::unique_ptr<Stream> stream = device->make_stream();
  Loader loader(dataset, options, *device);
  for (std::int64_t i = 0; i < options.batches; ++i) {
    Batch batch = promised(loader.next(*stream));
    HostCopy copy(batch, *stream);
    if (out) out->write(file_of(batch.at()), safetensors(copy.tensors()));
    each(describe(batch, copy, *dataset));
    end_if_stopped(query.stop);
  }
}

}  // namespace

bool look_at_batches(const Job& job, const BatchQuery& query,
                     const std::function<void(const Json&)>& each) {
  try {
    look(job, query, each);
  } catch (const Error& error) {
    if (!is_stop(error)) throw;
    return false;
  }
  return true;
}

}  // namespace penstock
