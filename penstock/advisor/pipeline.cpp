#include "penstock/advisor/pipeline.h"

#include <set>

#include "penstock/base/settings.h"

namespace penstock {
namespace {

constexpr double kHourMs = 3.6e6;
constexpr std::int64_t kMostBatches = 10'000'000;
constexpr std::int64_t kMostStages = 64;

const SettingsTable<PipelineStage>& stage_settings() {
  static const SettingsTable<PipelineStage> table =
      SettingsTable<PipelineStage>()
          .text("name", &PipelineStage::name, "Name of the stage")
          .required()
          .not_empty()
          .number("service_ms", &PipelineStage::service_ms, 0, kHourMs,
                  "Mean time of one batch on one worker, in milliseconds")
          .required()
          .number("cv", &PipelineStage::cv, 0, 10,
                  "Standard deviation of the service time / its mean")
          .integer("workers", &PipelineStage::workers, 1, 1024,
                   "Number of workers")
          .integer("queue", &PipelineStage::queue, 1, 1 << 20,
                   "Batches that can wait behind the stage")
          .number("scaling", &PipelineStage::scaling, 0, 1,
                  "Scaling: n workers do the work of n to the power of this");
  return table;
}

void read_stages(Spec& spec, const SettingSchema& setting, Pipeline& to) {
  const Json* list = spec.raw(setting.key);
  if (list == nullptr || !list->is_array() || list->array().empty() ||
      std::ssize(list->array()) > kMostStages)
    spec.refuse(setting.key,
                list == nullptr ? "the list of stages is missing"
                : !list->is_array()
                    ? "found " + list->dump() + ", expected a list of stages"
                : list->array().empty()
                    ? "the list has no stages"
                    : "the list has more than " + std::to_string(kMostStages) +
                          " stages",
                R"(write them in order, as in "stages": [{"name": "read", )"
                R"("service_ms": 10, "workers": 2, "queue": 4}])");
  std::set<std::string> names;
  for (std::size_t i = 0; i < list->array().size(); ++i) {
    const std::string path = setting.key + "[" + std::to_string(i) + "]";
    if (!list->array()[i].is_object())
      spec.refuse(path,
                  "found " + list->array()[i].dump() + ", expected an object",
                  R"(write a stage as {"name": "read", "service_ms": 10})");
    Spec section(list->array()[i], spec.path_of(path));
    PipelineStage stage = stage_settings().parse(section);
    if (!names.insert(stage.name).second)
      spec.refuse(path, "two stages have the name '" + stage.name + "'",
                  "give each stage a different name");
    to.stages.push_back(std::move(stage));
  }
}

struct Copy {
  double ms = 0;
};

void read_copy(Spec& spec, const SettingSchema& setting, Pipeline& to) {
  if (spec.raw(setting.key) == nullptr) return;
  to.copy_ms = SettingsTable<Copy>()
                   .number("ms", &Copy::ms, 0, kHourMs,
                           "Time to copy one batch, in milliseconds")
                   .required()
                   .parse(spec.section(setting.key))
                   .ms;
}

const SettingsTable<Pipeline>& pipeline_settings() {
  static const SettingsTable<Pipeline> table =
      SettingsTable<Pipeline>()
          .number("step_ms", &Pipeline::step_ms, 1e-6, kHourMs,
                  "Time of the accelerator for one batch, in milliseconds")
          .required()
          .number("step_cv", &Pipeline::step_cv, 0, 10,
                  "Standard deviation of the step time / its mean")
          .choice(
              "delivery", &Pipeline::delivery,
              {{"completion", Delivery::completion}, {"step", Delivery::step}},
              "Order of batches between stages. step: restored after every "
              "stage; completion: the order of completion")
          .integer("batches", &Pipeline::batches, 2, kMostBatches,
                   "Number of batches")
          .integer("seed", &Pipeline::seed, 0, INT64_MAX,
                   "Seed of the random times")
          .integer("cpus", &Pipeline::cpus, 1, 1 << 20,
                   "Processors that more workers may use")
          .setting("stages", Json(Json::Object{}), read_stages,
                   [](const Pipeline&) { return Json(); })
          .setting("copy", Json(Json::Object{}), read_copy,
                   [](const Pipeline&) { return Json(); });
  return table;
}

double ms_per_item(const StageNumbers& stage) {
  return 1e3 * seconds(stage.busy_wall) / static_cast<double>(stage.items);
}

}  // namespace

Pipeline parse_pipeline(const Json& document, const std::string& origin) try {
  Json holder(Json::Object{{"pipeline", document}});
  Spec whole(holder, "");
  if (!document.is_object())
    whole.refuse(
        "pipeline",
        "found " + std::string(document.type_name()) + ", expected an object",
        R"(write {"step_ms": 20, "stages": [...]})");
  return pipeline_settings().parse(Spec(document, ""));
} catch (const Error& error) {
  ErrorParts parts = error.parts();
  parts.where = origin + (parts.where.empty() ? "" : ": ") + parts.where;
  throw Error(error.kind(), std::move(parts));
}

std::optional<Pipeline> pipeline_of(const Snapshot& window) {
  Pipeline pipeline;
  for (const StageNumbers& stage : window.stages) {
    if (stage.places == 0 || stage.items == 0) return std::nullopt;
    pipeline.stages.push_back({.name = stage.name,
                               .service_ms = ms_per_item(stage),
                               .cv = stage.times.variation(),
                               .workers = std::max(1, stage.workers),
                               .queue = stage.places});
  }
  if (pipeline.stages.empty() || window.parts.steps == 0) return std::nullopt;
  // What the loop does between two steps is there with faster stages, too.
  pipeline.step_ms = 1e3 * seconds(window.parts.compute + window.parts.host) /
                     static_cast<double>(window.parts.steps);
  pipeline.step_cv = window.step_cv.value_or(0);
  if (window.copy && window.copy->items > 0)
    pipeline.copy_ms = ms_per_item(*window.copy);
  pipeline.batches = window.parts.steps;
  pipeline.cpus = static_cast<int>(window.limits.cpus);
  pipeline.delivery =
      window.restores_order ? Delivery::step : Delivery::completion;
  return pipeline;
}

double rate_of(const Snapshot& window) {
  return static_cast<double>(window.parts.steps) / seconds(window.parts.wall);
}

}  // namespace penstock
