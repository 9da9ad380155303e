#include <array>
#include <cmath>
#include <cstdio>
#include <memory>

#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/demo/demo.h"
#include "penstock/device/device.h"
#include "penstock/inspect/inspect.h"
#include "penstock/run/run.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

struct DoctorArguments {
  std::string device = "auto";
  bool parts = false, quick_train = false, measure = false;
};

std::string shown(const Json& value, const char* unit = "") {
  if (value.is_null()) return "n/a";
  if (value.is_string()) return value.string();
  if (!value.is_number()) return value.dump();
  const std::string name = unit;
  if (name == "B" || name == "B/s")
    return shown_bytes(static_cast<std::size_t>(value.number())) +
           (name == "B" ? "" : "/s");
  const bool whole = std::abs(value.number()) < 1e15 &&
                     value.number() == std::round(value.number());
  char text[40];
  std::snprintf(text, sizeof(text), whole ? "%.0f" : "%.3g", value.number());
  return text + (name.empty() ? "" : " " + name);
}

std::string parts_text(const Json& parts) {
  std::string text;
  for (const Json& part : parts.array()) {
    const bool there = std::get<bool>(part.find("there")->value());
    text += (there ? "  ok  " : "  --  ") + part.find("part")->string() + ": " +
            part.find("says")->string() + "\n";
  }
  return text;
}

/// A line for each member that is there, by its name in the document.
std::string facts_of(const Json& json,
                     const std::vector<std::array<const char*, 3>>& lines) {
  std::string text;
  for (const auto& [key, name, unit] : lines)
    if (const Json* value = json.find(key))
      text += "  " + std::string(name) + ": " + shown(*value, unit) + "\n";
  return text;
}

std::string system_text(const Json& json) {
  const Json& system = *json.find("system");
  const Json& drive = *system.find("cache_drive");
  return "system\n" +
         facts_of(*json.find("machine"), {{"processor", "processor", ""},
                                          {"cpus", "processors", ""},
                                          {"cpus_from", "by", ""},
                                          {"memory_bytes", "memory", "B"},
                                          {"memory_from", "by", ""},
                                          {"memory_free_bytes", "free", "B"},
                                          {"kernel", "kernel", ""}}) +
         facts_of(system,
                  {{"os", "release", ""},
                   {"container", "container", ""},
                   {"docker", "docker", ""},
                   {"nvidia_container_toolkit", "GPUs in containers", ""},
                   {"gpu_driver", "NVIDIA driver", ""},
                   {"least_driver", "supports CUDA 13 or later", ""},
                   {"open_files", "limit of open files", ""},
                   {"shared_bytes", "/dev/shm", "B"}}) +
         "  limit of locked or pinned memory: " +
         (system.find("locked_bytes")->is_null()
              ? std::string("no limit")
              : shown(*system.find("locked_bytes"), "B")) +
         "\n" +
         facts_of(drive, {{"folder", "cache", ""},
                          {"file_system", "on", ""},
                          {"kind", "drive", ""},
                          {"free_bytes", "free", "B"}});
}

std::string profile_text(const Json& profile) {
  if (const Json* why = profile.find("why_not"))
    return "\nmeasured: n/a, " + why->string() + "\n";
  return "\nmeasured " + profile.find("measured")->string() + "\n" +
         facts_of(profile, {{"memory_bytes_s", "memory, one thread", "B/s"},
                            {"memory_bytes_s_all", "memory, all", "B/s"},
                            {"cores", "processors in effect", ""},
                            {"copy_bytes_s", "to the GPU", "B/s"}}) +
         facts_of(*profile.find("drive"),
                  {{"write_bytes_s", "drive writes", "B/s"},
                   {"read_bytes_s", "drive reads", "B/s"},
                   {"read_latency_ms", "a read of a page", "ms"},
                   {"direct", "without the page cache", ""}});
}

std::string tests_text(const Json& tests) {
  std::string text;
  for (const Json& test : tests.array()) {
    const std::string state = test.find("state")->string();
    text += (state == "ok"    ? "  ok  "
             : state == "n/a" ? "  n/a "
                              : "  BAD ") +
            test.find("test")->string() + ": " + test.find("says")->string();
    if (const Json* took = test.find("seconds"))
      text += " (" + shown(*took, "s") + ", RAM " +
              shown(*test.find("resident_bytes"), "B") + ", device " +
              shown(*test.find("device_bytes"), "B") + ")";
    text += "\n";
  }
  return text;
}

bool all_hold(const Json& tests) {
  for (const Json& test : tests.array())
    if (test.find("state")->string() == "failed") return false;
  return true;
}

/// All six checkpoints were reached and hold.
bool trained(const Json& tests) {
  constexpr std::size_t kCheckpoints = 6;
  if (tests.array().size() != kCheckpoints) return false;
  for (const Json& test : tests.array())
    if (test.find("state")->string() != "ok") return false;
  return true;
}

void run_quick_train(const DoctorArguments& arguments, Invocation& invocation) {
  Json json;
  json["device"] = arguments.device;
  json["checkpoints"] = quick_train(arguments.device);
  const bool good = trained(*json.find("checkpoints"));
  json["ok"] = good;
  if (!good) invocation.exit_code = 1;
  if (invocation.json) return print_document(json);
  print("training on " + arguments.device + "\n" +
        tests_text(*json.find("checkpoints")));
  if (!good) {
    const Json& last = json.find("checkpoints")->array().back();
    if (!last.find("next")->is_null())
      print("next: " + last.find("next")->string() + "\n");
  }
}

void run_parts(const Invocation& invocation) {
  Json json;
  json["parts"] = doctor_parts();
  if (invocation.json) return print_document(json);
  print(parts_text(*json.find("parts")));
}

void run_doctor(const DoctorArguments& arguments, Invocation& invocation) {
  if (arguments.parts) return run_parts(invocation);
  if (arguments.quick_train) return run_quick_train(arguments, invocation);
  (void)parse_device_spec(arguments.device, "--device");
  Json json = doctor(arguments.measure);
  Json& tests = json["tests"];
  tests = device_tests(arguments.device);
  const bool good = all_hold(tests);
  json["ok"] = good;
  if (!good) invocation.exit_code = 1;
  if (invocation.json) return print_document(json);
  print(system_text(json) + profile_text(*json.find("profile")) + "\nparts\n" +
        parts_text(*json.find("parts")) + "\ntests of " + arguments.device +
        "\n" + tests_text(tests));
  for (const Json& repair : json.find("repairs")->array())
    print("\n" + repair.find("what")->string() + "\n  " +
          repair.find("next")->string() + "\n");
  for (const Json& test : tests.array())
    if (test.find("state")->string() == "failed" &&
        !test.find("next")->is_null())
      print("\n" + test.find("test")->string() + "\n  " +
            test.find("next")->string() + "\n");
}

RunVerb add_doctor(Options& options, Invocation& invocation) {
  auto arguments = std::make_shared<DoctorArguments>();
  options.add("--device", arguments->device,
              "Device to test: cpu, cuda, cuda:1 or auto");
  options.flag("--parts", arguments->parts,
               "Only list the optional parts, without measuring or testing");
  options.flag("--quick-train", arguments->quick_train,
               "Train a small network for ten steps with six checks. The exit "
               "code is 0 if all pass");
  options.flag("--measure", arguments->measure,
               "Measure this machine again and keep the result");
  add_json(options, invocation, "One JSON document");
  return [arguments](Invocation& of) { run_doctor(*arguments, of); };
}

}  // namespace

Verb doctor_verb() {
  return {.name = "doctor",
          .help = "Show and test what this machine and this build can do",
          .example = "penstock doctor --quick-train",
          .add = add_doctor};
}

}  // namespace penstock
