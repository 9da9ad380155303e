#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "penstock/loader/loader.h"

namespace penstock {

/// Where a test's batches are filled.
struct TierCase {
  const char* device;
  const char* cache;
  int workers;

  bool on_sim() const { return std::string(device) == "sim"; }
  bool kept_on_sim() const {
    return on_sim() && std::string(cache) == "device";
  }
};

inline void PrintTo(const TierCase& c, std::ostream* out) {
  *out << c.device << " " << c.cache << " " << c.workers << " workers";
}

/// `sim` in virtual time.
inline std::unique_ptr<Device> open_for_test(const std::string& kind) {
  return open_device({.kind = kind, .virtual_time = kind == "sim"});
}

/// A batch on the host.
struct SeenBatch {
  std::vector<SampleId> ids;
  std::vector<std::int64_t> rejected;   // rows
  std::map<std::string, Shape> shapes;  // of each tensor
  std::map<std::string, std::string> bytes;

  template <class Number>
  std::vector<Number> numbers(const std::string& name) const {
    const std::string& from = bytes.at(name);
    std::vector<Number> to(from.size() / sizeof(Number));
    std::memcpy(to.data(), from.data(), from.size());
    return to;
  }
  friend bool operator==(const SeenBatch&, const SeenBatch&) = default;
};

/// All batches of a loader, on the host. For the tests of this room.
inline std::vector<SeenBatch> seen_batches(std::shared_ptr<const Dataset> set,
                                           const LoaderOptions& options,
                                           Device& device) {
  Loader loader(std::move(set), options, device);
  std::unique_ptr<Stream> stream = device.make_stream();
  std::vector<SeenBatch> seen;
  while (std::optional<Batch> batch = loader.next(*stream)) {
    SeenBatch& one = seen.emplace_back();
    one.ids.assign(batch->ids().begin(), batch->ids().end());
    for (const RejectedSample& bad : batch->rejected())
      one.rejected.push_back(bad.row);
    for (const NamedTensor& tensor : batch->tensors()) {
      one.shapes[tensor.name] = tensor.view.shape;
      std::string& host = one.bytes[tensor.name];
      host.resize(tensor.view.bytes());
      stream->copy(reinterpret_cast<std::byte*>(host.data()), tensor.view.data,
                   host.size());
      stream->synchronize();
    }
  }
  return seen;
}

}  // namespace penstock
