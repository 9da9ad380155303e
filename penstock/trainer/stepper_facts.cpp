#include "penstock/trainer/stepper_facts.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock {

std::vector<SwitchInForce> switches_in_force(const Learning& learning,
                                             const ModelFacts& model,
                                             bool on_gpu,
                                             const std::string& no_graphs) {
  const Json asked = learning_settings().shown(learning);
  std::vector<SwitchInForce> switches;
  auto add = [&](const char* name, Json got, const char* why_not) {
    const Json& wanted = *asked.find(name);
    const bool same = got == wanted;
    switches.push_back({name, wanted, std::move(got), same ? "" : why_not});
  };
  add("precision", *asked.find("precision"), "");
  add("tf32", learning.tf32 && on_gpu, "the cpu does not support it");
  add("graphs", no_graphs.empty() ? *asked.find("graphs") : Json("off"),
      no_graphs.c_str());
  add("accumulate", learning.accumulate, "");
  add("ema", learning.ema, "");
  if (model.smoothing)
    add("label_smoothing", *model.smoothing,
        "the target is a number, not a class");
  std::ranges::copy(model.in_force, std::back_inserter(switches));
  return switches;
}

Json about_model(const ModelFacts& model, const Json& found) {
  std::int64_t learned = 0;
  for (const Parameter& parameter : model.parameters)
    learned += parameter.value.numel();
  Json json;
  if (model.numbers > 0) {
    json["parameters"] = model.numbers;
    json["bytes"] = model.bytes;
  }
  if (model.row_work.flops > 0) {
    json["tokens_per_row"] = model.row_work.tokens;
    json["flops_per_row"] = model.row_work.flops;
    json["peak_flops"] = model.row_work.peak_flops;
  }
  for (const auto& [name, value] : found.object()) json[name] = value;
  if (model.form.adapter) json["adapter"] = true;
  json["learned"] = learned;
  if (model.numbers == 0) json["parameters"] = learned;
  return json;
}

// Threads may differ: then the last bits do, too.
void check_description(const Json& ours, const Json& found) {
  for (const auto& [key, expected] : ours.object()) {
    const Json* value = found.is_object() ? found.find(key) : nullptr;
    if (value != nullptr && *value == expected) continue;
    std::string why = "found " +
                      (value == nullptr ? "nothing" : value->dump()) +
                      ", expected " + expected.dump();
    if (key == "threads") {
      log(LogLevel::warning,
          "the checkpoint was written with another number of threads (" + why +
              "): the run continues, but not bit for bit");
      continue;
    }
    throw Error(ErrorKind::request,
                {.code = "resume.other_model",
                 .what = "cannot continue from the checkpoint",
                 .where = "model." + key,
                 .why = std::move(why),
                 .next = "resume with the job that wrote the checkpoint, or "
                         "start a new run"});
  }
}

const NamedTensor* find_tensor(const Batch& batch, std::string_view name) {
  std::span<const NamedTensor> tensors = batch.tensors();
  auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

std::int64_t bytes_of(const std::vector<Parameter>& tensors) {
  std::int64_t bytes = 0;
  for (const Parameter& one : tensors)
    bytes += static_cast<std::int64_t>(one.value.nbytes());
  return bytes;
}

}  // namespace penstock
