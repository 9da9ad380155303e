#include "penstock/inspect/doctor.h"

#include "penstock/base/base.h"
#include "penstock/device/device.h"
#include "penstock/inspect/system.h"
#include "penstock/monitor/monitor.h"
#include "penstock/session/session.h"
#include "penstock/sources/sources.h"

namespace penstock {
namespace {

Json part(const char* name, bool there, const std::string& says) {
  Json json;
  json["part"] = name;
  json["there"] = there;
  json["says"] = says;
  return json;
}

Json source_part(const SourceKind& kind) {
  try {
    load_source_plugin(kind.name);
    return part(kind.name.c_str(), true, source_way(kind.name));
  } catch (const Error& error) {
    return part(kind.name.c_str(), false, error.what());
  }
}

Json device_part(const char* kind) {
  try {
    DeviceSpec spec;
    spec.kind = kind;
    std::unique_ptr<Device> device = open_device(spec);
    std::optional<GpuUse> gpu = read_gpu_use(*device);
    if (!gpu) return part(kind, true, device->name());
    Json json = part(kind, true, device->name() + ", " + gpu->text());
    json["gpu"] = gpu->json();
    return json;
  } catch (const Error& error) {
    return part(kind, false, error.what());
  }
}

Json trainer_part() {
  try {
    return part("trainer", true, load_trainer().build_info());
  } catch (const Error& error) {
    return part("trainer", false, error.what());
  }
}

/// The GPU, where this build and this machine have one.
std::unique_ptr<Device> gpu() try {
  DeviceSpec spec;
  spec.kind = "cuda";
  return open_device(spec);
} catch (const Error&) {
  return nullptr;  // device_part() says why
}

Json profile_of(const std::filesystem::path& folder, Device* device,
                bool measure) try {
  return machine_profile(folder, device, measure);
} catch (const Error& error) {
  Json json;
  json["why_not"] = error.what();
  return json;
}

void add_repair(Json& list, std::string what, std::string next) {
  Json entry;
  entry["what"] = std::move(what);
  entry["next"] = std::move(next);
  list.push_back(std::move(entry));
}

/// What CUDA 13, the newest that we are built with, needs at least.
constexpr int kCuda = 13000;

Json repairs_of(const SystemFacts& system, const DriveFacts& drive) {
  constexpr std::size_t kFewFiles = 4096;
  constexpr std::size_t kLittleShared = std::size_t{256} << 20;
  constexpr std::size_t kLittleRoom = std::size_t{1} << 30;
  Json list{Json::Array{}};
  if (system.open_files && *system.open_files < kFewFiles)
    add_repair(list,
               "a process may have only " + std::to_string(*system.open_files) +
                   " files open, fewer than many shards or connections need",
               "ulimit -n 65536");
  if (system.shared_bytes && *system.shared_bytes < kLittleShared)
    add_repair(list,
               "/dev/shm has " + shown_bytes(*system.shared_bytes) +
                   ", too little for a DataLoader's worker processes, which "
                   "fail with a bus error",
               system.container.empty() ? "mount -o remount,size=8G /dev/shm"
                                        : "docker run --shm-size=8g ...");
  if (drive.free_bytes && *drive.free_bytes < kLittleRoom)
    add_repair(list,
               "the drive of the cache has only " +
                   shown_bytes(*drive.free_bytes) + " left",
               "penstock cache rm --all, or name another with XDG_CACHE_HOME");
  const std::string least = least_driver(kCuda, 0, 0);
  if (!system.gpu_driver.empty() && is_older_driver(system.gpu_driver, least))
    add_repair(list,
               "the NVIDIA driver is " + system.gpu_driver +
                   "; programs of CUDA 13 need " + least,
               "apt-get install nvidia-open, or build for the CUDA of this "
               "driver");
  if (!system.gpu_driver.empty() && system.docker && !system.gpu_containers)
    add_repair(list, "docker cannot hand the GPU to containers",
               "apt-get install nvidia-container-toolkit && nvidia-ctk runtime "
               "configure --runtime=docker && systemctl restart docker");
  return list;
}

Json build_json() {
  Json json;
  json["compiler"] =
#if defined(__clang__)
      "clang " __clang_version__;
#else
      "gcc " __VERSION__;
#endif
  return json;
}

}  // namespace

Json doctor_parts() {
  Json parts;
  for (const SourceKind& kind : source_kinds())
    parts.push_back(source_part(kind));
  for (const char* kind : {"cpu", "sim", "cuda"})
    parts.push_back(device_part(kind));
  parts.push_back(trainer_part());
  return parts;
}

Json doctor(bool measure) {
  Json json;
  json["machine"] = machine_json();
  const std::filesystem::path folder = default_store_dir().parent_path();
  const SystemFacts system = read_system();
  const DriveFacts drive = read_drive(folder);
  json["system"] = json_of(system);
  json["system"]["least_driver"] =
      system.gpu_driver.empty() ? Json() : Json(least_driver(kCuda, 0, 0));
  json["system"]["cache_drive"] = json_of(drive);
  json["system"]["cache_drive"]["folder"] = folder.string();
  json["build"] = build_json();
  json["profile"] = profile_of(folder, gpu().get(), measure);
  json["repairs"] = repairs_of(system, drive);
  json["parts"] = doctor_parts();
  return json;
}

}  // namespace penstock
