#include "penstock/job/sections.h"

#include <limits>

namespace penstock {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 40;

/// The settings that the loader takes as they are.
SettingsTable<LoaderOptions> options_settings() {
  using Options = LoaderOptions;
  return SettingsTable<Options>()
      .integer("batch_size", &Options::batch_size, 1, 1 << 24,
               "global, per step")
      .integer("seed", &Options::seed, 0,
               std::numeric_limits<std::int64_t>::max(), "")
      .boolean("shuffle", &Options::shuffle, "")
      .integer("prefetch", &Options::prefetch, 0, 4096,
               "batches ready ahead, in total")
      .integer("readers", &Options::readers, 0, 1024,
               "reads from the source that are in flight at once")
      .choice("read", &Options::per_sample,
              {{"batch", false}, {"per_sample", true}}, "")
      .choice("on_bad", &Options::on_bad,
              {{"stop", OnBad::stop},
               {"substitute", OnBad::substitute},
               {"mask", OnBad::mask}},
              "of samples that cannot be used when they are read")
      .setting(
          "operations", operations_schema(),
          [](Spec& spec, const SettingSchema& setting, Options& to) {
            if (const Json* list = spec.raw(setting.key))
              to.operations =
                  parse_operations(*list, spec.path_of(setting.key));
          },
          [](const Options& from) {
            return from.operations.empty() ? Json()
                                           : recipes_of(from.operations);
          });
}

void check_read(Spec& spec, Job::Loading& loading) {
  if (!loading.options.per_sample || loading.cache == "none") return;
  if (loading.cache != "auto")
    spec.refuse("read", "\"per_sample\" reads from the source",
                "leave \"cache\" out, or set it to \"none\"");
  loading.cache = "none";
}

}  // namespace

const SettingsTable<Job::Loading>& loading_settings() {
  using Loading = Job::Loading;
  static const SettingsTable<Loading> table =
      SettingsTable<Loading>()
          .inside(&Loading::options, options_settings())
          .integer("workers", &Loading::workers, 0, 1024,
                   "default: from the processors we may use")
          .choice("cache", &Loading::cache,
                  {{"auto", "auto"},
                   {"device", "device"},
                   {"ram", "ram"},
                   {"disk", "disk"},
                   {"none", "none"}},
                  "")
          .setting(
              "cache_dir",
              settings::rule_of("string",
                                "for \"disk\" and temporary files; default: "
                                "penstock/stores in the user's cache folder"),
              [](Spec& spec, const SettingSchema& setting, Loading& to) {
                to.cache_dir = settings::read_text(spec, setting, to.cache_dir);
              },
              [](const Loading& from) {
                return from.cache_dir.empty() ? Json() : Json(from.cache_dir);
              })
          .choice("tail", &Loading::tail,
                  {{"drop", Tail::drop},
                   {"pad", Tail::pad},
                   {"exact", Tail::exact}},
                  "default: drop for train, exact for val")
          .check(check_read);
  return table;
}

const SettingsTable<Job::Training>& training_settings() {
  using Training = Job::Training;
  static const SettingsTable<Training> table =
      SettingsTable<Training>()
          .integer("epochs", &Training::epochs, 1, kMany, "")
          .integer("max_steps", &Training::max_steps, 1, kMany, "")
          .integer("checkpoint_every_steps", &Training::checkpoint_every_steps,
                   1, kMany,
                   "default: a model is saved at the end of every epoch");
  return table;
}

const SettingsTable<Job::Output>& output_settings() {
  static const SettingsTable<Job::Output> table =
      SettingsTable<Job::Output>().text("dir", &Job::Output::dir, "");
  return table;
}

}  // namespace penstock
