#include "penstock/demo/device_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "penstock/demo/trial.h"

namespace penstock {
namespace {

Json entry(const char* name, const char* state, std::string says, Json next) {
  Json json;
  json["test"] = name;
  json["state"] = state;
  json["says"] = std::move(says);
  json["next"] = std::move(next);
  return json;
}

/// What is not there cannot be tested, and is no failure.
bool is_absent(const Error& error) {
  static constexpr const char* kAbsent[] = {
      "trainer.part_missing", "source.part_missing", "device.no_driver",
      "device.no_gpu", "device.not_built"};
  return std::ranges::find(kAbsent, error.parts().code) != std::end(kAbsent);
}

/// `work` says what it found.
template <class Work>
Json tested(const char* name, Work work) try {
  return entry(name, "ok", work(), Json());
} catch (const Error& error) {
  return entry(name, is_absent(error) ? "n/a" : "failed", error.what(),
               error.parts().next);
} catch (const std::exception& error) {
  return entry(name, "failed", error.what(), Json());
}

Job job_on(const std::string& device) {
  Json document;
  document["device"] = device;
  return parse_job_of_rows(document);
}

[[noreturn]] void refuse_bytes(std::size_t at, std::size_t of) {
  throw Error(
      ErrorKind::device,
      {.code = "device.wrong_bytes",
       .what = "the device's memory returns other bytes than were written",
       .where = "byte " + std::to_string(at) + " of " + std::to_string(of),
       .why = "the byte that was read differs from the byte that was written",
       .next = "look for memory errors: nvidia-smi -q -d ECC; dmesg | grep -i "
               "xid"});
}

/// Bytes there and back again, in pieces of at most 64 MiB.
void check_bytes(Device& device, std::size_t bytes) {
  constexpr std::size_t kPiece = std::size_t{64} << 20;
  auto stream = device.make_stream();
  Buffer there = device.allocate(bytes);
  Buffer out = device.allocate_pinned(std::min(bytes, kPiece));
  Buffer back = device.allocate_pinned(std::min(bytes, kPiece));
  auto* words = reinterpret_cast<std::uint64_t*>(out.data());
  for (const bool reading : {false, true})
    for (std::size_t at = 0; at < bytes; at += kPiece) {
      const std::size_t size = std::min(kPiece, bytes - at);
      for (std::size_t i = 0; i < size / 8; ++i) words[i] = mix64(at + i);
      if (!reading) {
        stream->copy(there.data() + at, out.data(), size);
        stream->synchronize();
        continue;
      }
      stream->copy(back.data(), there.data() + at, size);
      stream->synchronize();
      const std::size_t whole = size / 8 * 8;
      const auto wrong =
          std::mismatch(out.data(), out.data() + whole, back.data());
      if (wrong.first != out.data() + whole)
        refuse_bytes(at + static_cast<std::size_t>(wrong.first - out.data()),
                     bytes);
    }
}

std::string test_basics(const std::string& kind) {
  const auto device = device_of_run(job_on(kind), {});
  check_bytes(*device, std::size_t{1} << 20);
  std::string says = device->name() + ": 1 MiB was copied there and back";
  if (std::optional<GpuUse> gpu = read_gpu_use(*device))
    says += "; " + gpu->text();
  return says;
}

/// An eighth of what is free, and at most 256 MiB: the machine is in use.
std::string test_memory(const std::string& kind) {
  const auto device = device_of_run(job_on(kind), {});
  std::size_t free = device->memory().free;
  if (device->memory_kind() == MemoryKind::cpu)
    free = read_host_limits().memory_free.value_or(std::size_t{1} << 28);
  const std::size_t bytes =
      std::min(free / 8, std::size_t{256} << 20) / 4096 * 4096;
  const Nanoseconds began = wall_clock().now();
  check_bytes(*device, bytes);
  char took[32];
  std::snprintf(took, sizeof(took), "%.2f s",
                seconds(wall_clock().now() - began));
  return shown_bytes(bytes) + " of " + shown_bytes(free) +
         " of free memory keep what is written, " + took;
}

std::string test_network(const std::string& kind, const char* precision) {
  Trial trial(kind, precision);
  const double first = trial.step();
  double last = first;
  for (int i = 0; i < 9; ++i) last = trial.step();
  if (!std::isfinite(last))
    throw Error(ErrorKind::device,
                {.code = "device.wrong_numbers",
                 .what = "training a small network failed",
                 .where = kind + ", " + precision,
                 .why = "after ten steps the loss is not a finite number",
                 .next = "train in float32: --set train.precision=float32"});
  std::string in_force;
  for (const SwitchInForce& one : trial.stepper().facts().in_force)
    if (one.name == "train.precision" || one.name == "precision")
      in_force = one.got.is_string() ? one.got.string() : one.got.dump();
  char text[100];
  std::snprintf(text, sizeof(text), "ten steps, loss %.3g, then %.3g", first,
                last);
  return text + (in_force.empty() ? "" : ", in " + in_force);
}

std::string test_libraries(const std::string& kind) {
  const TrainerPlugin& trainer = load_trainer();
  if (kind.starts_with("cuda"))
    if (const std::string why = trainer.cuda_unavailable_reason(); !why.empty())
      throw Error(ErrorKind::device,
                  {.code = "device.torch_without_cuda",
                   .what = "torch cannot use the GPU",
                   .where = trainer.build_info(),
                   .why = why,
                   .next = "install a libtorch for the CUDA version of your "
                           "driver (docs/reference/gpu.md)"});
  return trainer.build_info();
}

/// Runs the checkpoints one after the other and looks at the memory after each.
class Checkpoints6 {
 public:
  explicit Checkpoints6(std::string kind) : kind_(std::move(kind)) {}

  Json run() {
    check("device", [&] {
      opened_ = device_of_run(job_on(kind_), {});
      return opened_->name();
    });
    check("settings", [&] { return test_libraries(kind_); });
    check("model", [&] {
      trial_ = std::make_unique<Trial>(kind_, "bfloat16");
      return std::string("a network for sets of receivers on ") +
             trial_->device().name();
    });
    check("forward", [&] {
      const Json seen = trial_->validate();
      const Json* loss = seen.find("val_loss");
      return "in bfloat16, loss " +
             (loss == nullptr ? std::string("n/a") : loss->dump());
    });
    check("backward", [&] {
      return "a step moved the weights, loss " + shown(trial_->step());
    });
    check("ten_steps", [&] { return ten_steps(); });
    return std::move(list_);
  }

 private:
  template <class Work>
  void check(const char* name, Work work) {
    if (failed_) return;
    const Nanoseconds began = wall_clock().now();
    Json made = tested(name, work);
    made["seconds"] = seconds(wall_clock().now() - began);
    const std::optional<std::size_t> resident = read_host_use().resident_bytes;
    made["resident_bytes"] = resident ? Json(*resident) : Json();
    std::optional<std::size_t> there;
    if (opened_ != nullptr) there = read_device_use(*opened_).used;
    made["device_bytes"] = there ? Json(*there) : Json();
    failed_ = made.find("state")->string() != "ok";
    list_.push_back(std::move(made));
  }

  static std::string shown(double loss) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.4g", loss);
    return text;
  }

  std::string ten_steps() {
    double last = 0;
    for (int i = 0; i < 10; ++i) {
      last = trial_->step();
      if (std::isfinite(last)) continue;
      throw Error(ErrorKind::device,
                  {.code = "device.wrong_numbers",
                   .what = "training a small network failed",
                   .where = "step " + std::to_string(i + 2),
                   .why = "the loss is not a finite number",
                   .next = "train in float32: --set train.precision=float32"});
    }
    return "loss " + shown(last);
  }

  const std::string kind_;
  std::shared_ptr<Device> opened_;
  std::unique_ptr<Trial> trial_;
  bool failed_ = false;
  Json list_{Json::Array{}};
};

}  // namespace

Json device_tests(const std::string& device) {
  Json list{Json::Array{}};
  list.push_back(tested("basics", [&] { return test_basics(device); }));
  list.push_back(tested("memory", [&] { return test_memory(device); }));
  list.push_back(
      tested("network", [&] { return test_network(device, "float32"); }));
  list.push_back(tested("mixed_precision",
                        [&] { return test_network(device, "bfloat16"); }));
  list.push_back(tested("libraries", [&] { return test_libraries(device); }));
  return list;
}

Json quick_train(const std::string& device) {
  return Checkpoints6(device).run();
}

}  // namespace penstock
