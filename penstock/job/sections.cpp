#include "penstock/job/sections.h"

#include <limits>

namespace penstock {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 40;

void check_read(Spec& spec, Job::Loading& loading) {
  if (!loading.per_sample || loading.cache == "none") return;
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
          .integer("batch_size", &Loading::batch_size, 1, 1 << 24,
                   "global, per step")
          .integer("seed", &Loading::seed, 0,
                   std::numeric_limits<std::int64_t>::max(), "")
          .boolean("shuffle", &Loading::shuffle, "")
          .integer("workers", &Loading::workers, 0, 1024,
                   "default: from the processors we may use")
          .integer("prefetch", &Loading::prefetch, 0, 4096,
                   "batches ready ahead, in total")
          .choice("cache", &Loading::cache,
                  {{"auto", "auto"},
                   {"device", "device"},
                   {"ram", "ram"},
                   {"none", "none"}},
                  "")
          .choice("read", &Loading::per_sample,
                  {{"batch", false}, {"per_sample", true}}, "")
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
