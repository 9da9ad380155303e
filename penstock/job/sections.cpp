#include "penstock/job/sections.h"

#include <charconv>
#include <limits>

#include "penstock/job/cache_settings.h"
#include "penstock/models/models.h"

namespace penstock {
namespace {

constexpr std::int64_t kMostPaged = std::int64_t{1} << 31;
constexpr std::int64_t kMostWorkers = 1024;
constexpr std::int64_t kMostRows = 1 << 24;  // of a batch

const SettingsTable<Pages>& page_settings() {
  static const SettingsTable<Pages> table =
      SettingsTable<Pages>()
          .integer("page", &Pages::page, 1, kMostPaged,
                   "Consecutive rows in a page")
          .required()
          .integer("window", &Pages::window, 1, kMostPaged,
                   "Pages whose rows are shuffled together")
          .required();
  return table;
}

Json order_rule() {
  Json pages = page_settings().schema();
  pages["description"] =
      "Sizes of the pages and of the window that shuffle them";
  Json paged = object_schema(
      {{.key = "paged", .rule = std::move(pages), .required = true}});
  Json rule{Json::Object{}};
  rule["description"] =
      "How rows are shuffled. exact: over all rows; paged: pages are shuffled, "
      "then the rows of a window of pages, which reads disks in longer runs. "
      "Default: exact";
  rule["oneOf"].push_back(settings::choice_rule({"exact"}, ""));
  rule["oneOf"].push_back(std::move(paged));
  return rule;
}

void read_order(Spec& spec, const SettingSchema& setting, LoaderOptions& to) {
  const Json* given = spec.raw(setting.key);
  if (given == nullptr || *given == Json("exact")) return;
  if (!given->is_object())
    spec.refuse(setting.key,
                "found " + given->dump() + R"(, expected "exact" or pages)",
                R"(write {"paged": {"page": 4096, "window": 16}})");
  Spec order = spec.section(setting.key);
  to.pages = page_settings().parse(order.section("paged"));
  order.finish();
}

Json shown_order(const Pages& pages) {
  if (!pages) return Json();
  Json shown;
  shown["paged"] = page_settings().shown(pages);
  return shown;
}

Json group_rule() {
  Json rule{Json::Object{}};
  rule["description"] =
      "Whether batches hold samples of about equal length. buckets, or true: "
      "batches in a random order; hf: in the order of transformers' "
      "group_by_length";
  Json boolean{Json::Object{}};
  boolean["type"] = "boolean";
  rule["oneOf"].push_back(std::move(boolean));
  rule["oneOf"].push_back(settings::choice_rule({"buckets", "hf"}, ""));
  return rule;
}

void read_groups(Spec& spec, const SettingSchema& setting, LoaderOptions& to) {
  const Json* given = spec.raw(setting.key);
  if (given == nullptr || *given == Json(false)) return;
  if (*given == Json(true) || *given == Json("buckets"))
    to.group_by_length = LengthGroups::How::buckets;
  else if (*given == Json("hf"))
    to.group_by_length = LengthGroups::How::hf;
  else
    spec.refuse(setting.key,
                "found " + given->dump() +
                    R"(, expected true, false, "buckets" or "hf")",
                "write true");
}

Json shown_groups(const LoaderOptions& from) {
  if (from.group_by_length == LengthGroups::How::none) return {};
  return from.group_by_length == LengthGroups::How::hf ? "hf" : "buckets";
}

void check_order(Spec& spec, LoaderOptions& options) {
  if (options.group_by_length != LengthGroups::How::none &&
      (!options.shuffle || options.pages))
    spec.refuse("group_by_length",
                options.shuffle
                    ? "\"order\" has pages, which are shuffled on their own"
                    : "groups are shuffled, but \"shuffle\" is false",
                "leave one of the two out");
  if (options.pages && !options.shuffle)
    spec.refuse("order", "pages are shuffled, but \"shuffle\" is false",
                "set \"shuffle\" to true, or leave \"order\" out");
}

/// The settings that the loader takes unchanged.
SettingsTable<LoaderOptions> options_settings() {
  using Options = LoaderOptions;
  return SettingsTable<Options>()
      .integer("seed", &Options::seed, 0,
               std::numeric_limits<std::int64_t>::max(),
               "Seed of the row order and of random changes. The same seed "
               "gives the same batches")
      .boolean("shuffle", &Options::shuffle,
               "Whether train rows are shuffled, differently in each epoch")
      .setting("order", order_rule(), read_order,
               [](const Options& from) { return shown_order(from.pages); })
      .setting("group_by_length", group_rule(), read_groups, shown_groups)
      .integer("prefetch", &Options::prefetch, 0, 4096,
               "Batches that are made ready ahead, in total")
      .integer("readers", &Options::readers, 0, 1024,
               "Reads from the source that are in flight at once")
      .choice("read", &Options::per_sample,
              {{"batch", false}, {"per_sample", true}},
              "How rows are read from the source. batch: many rows per "
              "statement; per_sample: one statement per row, without a cache, "
              "to measure what that costs")
      .choice("on_bad", &Options::on_bad,
              {{"stop", OnBad::stop},
               {"substitute", OnBad::substitute},
               {"mask", OnBad::mask}},
              "What to do with a sample that turns out to be unusable when its "
              "batch is made. stop: the run ends with an error; substitute: "
              "another sample is drawn; mask: its row is zeros, with 0 in the "
              "tensor `weight`")
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
          })
      .check(check_order);
}

SettingsTable<LoaderSection>& add_batch_size(
    SettingsTable<LoaderSection>& table) {
  return table.setting(
      "batch_size",
      auto_count_rule(kMostRows,
                      "Rows in a batch, over all ranks. auto: as many as fit "
                      "in memory and are worth it, found by trials of the "
                      "model before a run begins"),
      [](Spec& spec, const SettingSchema& setting, LoaderSection& to) {
        if (spec.raw(setting.key) == nullptr) return;
        const std::optional<std::int64_t> rows =
            read_auto_count(spec, setting, kMostRows);
        to.find_batch_size = !rows;
        if (rows) to.options.batch_size = *rows;
      },
      [](const LoaderSection& from) {
        return from.find_batch_size ? Json("auto")
                                    : Json(from.options.batch_size);
      });
}

/// "weights" or "balance": a column.
SettingsTable<LoaderSection>& add_drawing(SettingsTable<LoaderSection>& table) {
  for (const bool balance : {false, true})
    table
        .setting(
            balance ? "balance" : "weights",
            settings::rule_of(
                "string",
                balance
                    ? "Column whose values training draws equally often, with "
                      "replacement"
                    : "Column of numbers that gives each row its probability "
                      "in training, which draws with replacement"),
            [balance](Spec& spec, const SettingSchema& setting,
                      LoaderSection& to) {
              if (spec.raw(setting.key) == nullptr) return;
              const std::string column = spec.text(setting.key);
              if (column.empty())
                spec.refuse(setting.key, "the name is empty", "name a column");
              if (to.drawing)
                spec.refuse(setting.key, "\"weights\" already draws the rows",
                            "leave one of them out");
              to.drawing = {.column = column, .balance = balance};
            },
            [balance](const LoaderSection& from) {
              return from.drawing && from.drawing.balance == balance
                         ? Json(from.drawing.column)
                         : Json();
            })
        .not_empty();
  return table;
}

void check_drawing(Spec& spec, LoaderSection& loading) {
  if (!loading.drawing) return;
  const char* key = loading.drawing.balance ? "balance" : "weights";
  if (!loading.options.shuffle)
    spec.refuse(key, "rows are drawn at random, but \"shuffle\" is false",
                "set \"shuffle\" to true");
  if (loading.options.group_by_length != LengthGroups::How::none)
    spec.refuse(key,
                "rows are drawn at random, but \"group_by_length\" sorts them",
                "leave one of the two out");
  if (loading.options.pages)
    spec.refuse(key, "rows are drawn at random, but \"order\" has pages",
                "leave \"order\" out");
}

void check_preparing(Spec& spec, LoaderSection& loading) {
  if (loading.preparing == Preparing::meanwhile &&
      loading.options.group_by_length != LengthGroups::How::none)
    spec.refuse("prepare",
                "\"group_by_length\" needs the lengths of all samples before "
                "the first batch",
                "leave one of the two out");
}

Json limit_rule() {
  Json rule{Json::Object{}};
  rule["description"] =
      "Rows to use of each side, as a number or as a share such as \"10%\". "
      "Default: all rows";
  rule["oneOf"].push_back(settings::integer_rule(1, kMany, ""));
  Json share = settings::rule_of("string", "");
  share["pattern"] = "^(?!0+([.]0+)?%)(100([.]0+)?|[0-9]{1,2}([.][0-9]+)?)%$";
  rule["oneOf"].push_back(std::move(share));
  return rule;
}

void read_limit(Spec& spec, const SettingSchema& setting, LoaderSection& to) {
  const Json* given = spec.raw(setting.key);
  if (given == nullptr) return;
  if (!given->is_string()) {
    to.limit_rows = spec.integer(setting.key, {}, 1, kMany);
    return;
  }
  const std::string& text = given->string();
  double percent = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc() || std::string_view(end) != "%" || !(percent > 0) ||
      percent > 100)
    spec.refuse(
        setting.key,
        "found " + given->dump() + ", expected a share above 0% and up to 100%",
        "write \"10%\", or a number of rows: 1000");
  to.limit_share = percent / 100;
}

Json shown_limit(const LoaderSection& from) {
  if (from.limit_rows > 0) return Json(from.limit_rows);
  return from.limit_share < 1 ? Json(Json(100 * from.limit_share).dump() + "%")
                              : Json();
}

void read_workers(Spec& spec, const SettingSchema& setting, LoaderSection& to) {
  const Json* given = spec.raw(setting.key);
  if (given == nullptr) return;
  if (given->is_object())
    spec.refuse(setting.key, "found an object, expected a number of threads",
                "write the number of threads that prepare batches; \"readers\" "
                "sets how many reads from the source are in flight");
  to.workers = static_cast<int>(
      settings::read_integer(spec, setting, 0, 0, kMostWorkers));
}

void check_read(Spec& spec, LoaderSection& loading) {
  if (!loading.options.per_sample || loading.cache == "none") return;
  if (loading.cache != "auto" || loading.budgets.any())
    spec.refuse("read", "\"per_sample\" reads from the source",
                "leave \"cache\" out, or set it to \"none\"");
  loading.cache = "none";
}

}  // namespace

const SettingsTable<LoaderSection>& loading_settings() {
  using Loading = LoaderSection;
  static const SettingsTable<Loading> table = [] {
    SettingsTable<Loading> made;
    add_batch_size(made)
        .inside(&Loading::options, options_settings())
        .setting(
            "workers",
            settings::integer_rule(
                0, kMostWorkers,
                "Threads that prepare batches. Default: as many as `cpus`"),
            read_workers,
            [](const Loading& from) {
              return from.workers ? Json(*from.workers) : Json();
            })
        .integer("cpus", &Loading::cpus, 1, 4096,
                 "Processors that the loader's threads may use. Default: all "
                 "that this process may use")
        .choice("tune", &Loading::tune, {{"auto", true}, {"off", false}},
                "Whether workers, readers and prefetch adapt to measurements "
                "during the run. auto: those that the job does not set; off: "
                "they keep their values");
    made.integer("val_batch_size", &Loading::val_batch_size, 1, kMostRows,
                 "Rows in a validation batch. Default: batch_size");
    made.choice("exhausted", &Loading::exhausted,
                {{"stop", Exhausted::stop}, {"repeat", Exhausted::repeat}},
                "When an epoch of several \"sources\" ends. stop: when the "
                "first of them is used up; repeat: when all are, and shorter "
                "ones start again. Default: stop");
    add_drawing(made).setting("limit", limit_rule(), read_limit, shown_limit);
    add_cache_settings(made)
        .choice("prepare", &Loading::preparing,
                {{"auto", Preparing::automatic},
                 {"before", Preparing::before},
                 {"meanwhile", Preparing::meanwhile}},
                "When rows are prepared. before: all of them before the first "
                "batch; meanwhile: while batches are produced; auto: meanwhile "
                "for the packing \"stream\", else before")
        .choice(
            "tail", &Loading::tail,
            {{"drop", Tail::drop}, {"pad", Tail::pad}, {"exact", Tail::exact}},
            "What to do with the rows that do not fill the last batch. drop: "
            "they are left out of the epoch; pad: the batch is filled up with "
            "empty rows; exact: the last batch is shorter. Default: drop for "
            "training, exact for validation")
        .check(check_drawing)
        .check(check_preparing)
        .check(check_read)
        .rule("description",
              "The order of the rows, what a batch holds, and how fast batches "
              "are made.");
    return made;
  }();
  return table;
}

namespace {

void check_validations(Spec& spec) {
  if (spec.has("validate_every_steps") && spec.has("validate_every_epochs"))
    spec.refuse("validate_every_steps",
                "\"validate_every_epochs\" says when to validate already",
                "leave one of the two out");
}

}  // namespace

const SettingsTable<TrainSection>& training_settings() {
  using Training = TrainSection;
  static const SettingsTable<Training> table =
      SettingsTable<Training>()
          .integer("epochs", &Training::epochs, 1, kMany,
                   "Passes over the train rows")
          .integer(
              "max_steps", &Training::max_steps, 1, kMany,
              "Greatest number of steps, over all epochs. Default: no limit")
          .integer("checkpoint_every_steps", &Training::checkpoint_every_steps,
                   1, kMany,
                   "Steps between two checkpoints. Default: a checkpoint at "
                   "the end of every epoch")
          .integer("validate_every_epochs", &Training::validate_every_epochs, 1,
                   kMany,
                   "Epochs between two validations. The model is also "
                   "validated after the last epoch")
          .integer("validate_every_steps", &Training::validate_every_steps, 1,
                   kMany,
                   "Steps between two validations. The model is also validated "
                   "after the last step. Default: at the end of epochs")
          .integer(
              "validate_rows", &Training::validate_rows, 1, kMany,
              "Greatest number of held-out rows in a validation: always the "
              "same rows, chosen by loader.seed. Default: all of them")
          .choice(
              "keep", &Training::keep,
              {{"best", Keep::best},
               {"last", Keep::last},
               {"both", Keep::both}},
              "Weights that a run leaves: those of its best validation, those "
              "after its last step, or both, of which --output gets the "
              "best. Default: best if rows are held out, else last")
          .text(
              "metric", &Training::metric,
              "Number of a validation that decides which weights are the best: "
              "\"loss\" (default), or another one that the model measures, "
              "such "
              "as \"accuracy\"")
          .not_empty()
          .integer(
              "patience", &Training::patience, 1, kMany,
              "Validations in a row without a better one after which the run "
              "ends. The learning rate still follows the steps of the whole "
              "job. Default: the run does not end early")
          .integer("folds", &Training::folds, 2, 100,
                   "Cross-validation: trains the job so many times, each time "
                   "with another part of the rows of train and val held out. "
                   "The report has the mean and the spread of all metrics. "
                   "Default: the job is trained once")
          .boolean("profile", &Training::profile,
                   "Whether to write a trace of steps 10 to 30 to the run's "
                   "folder, and the time of each stage at the end of an epoch")
          .check([](Spec& spec, Training&) { check_validations(spec); });
  return table;
}

const SettingsTable<OutputSection>& output_settings() {
  using Output = OutputSection;
  static const SettingsTable<Output> table =
      SettingsTable<Output>()
          .rule("description", "What a run writes, and where.")
          .text("dir", &Output::dir,
                "Folder of the run: its report, metrics and checkpoints")
          .check([](Spec& section, Output& output) {
            if (output.dir.find("://") != output.dir.npos)
              section.refuse("dir", "the value is a URL, not a folder",
                             "name a folder: runs are written to this machine");
          })
          .boolean("tensorboard", &Output::tensorboard,
                   "Whether to write the run's metrics as TensorBoard events")
          .boolean("csv", &Output::csv,
                   "Whether to write the run's metrics to metrics.csv and "
                   "epochs.csv")
          .boolean("prometheus", &Output::prometheus,
                   "Whether to write the latest metrics to metrics.prom, for "
                   "Prometheus");
  return table;
}

}  // namespace penstock
