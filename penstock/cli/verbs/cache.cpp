#include <chrono>
#include <memory>
#include <utility>

#include "penstock/cli/output.h"
#include "penstock/cli/verb.h"
#include "penstock/inspect/inspect.h"
#include "penstock/session/session.h"

namespace penstock {
namespace {

struct CacheArguments {
  std::string dir, job;
  std::vector<std::string> sets;
  std::int64_t unused_days = 30;
  bool dry = false, store = false, stage = false;
  bool hub = false, datasets = false, yes = false;

  /// A list comes first, whatever is pruned.
  bool only_lists() const { return dry || !yes; }
};

std::string size_of(const Json& store) {
  return shown_bytes(static_cast<std::size_t>(store.find("bytes")->integer()));
}

/// One line of a store, with what was found about it.
std::string store_line(const Json& store, const std::string& beside = "") {
  std::string line = store.find("path")->string() + "  " + size_of(store);
  if (const Json* why = store.find("unusable"))
    return line + "  cannot be used: " + why->string() + "\n";
  const Json* source = store.find("source");
  return line + "  " + std::to_string(store.find("rows")->integer()) +
         " rows of " + (source->is_null() ? "?" : source->string()) +
         ", last used " + store.find("used")->string() + beside + "\n";
}

void run_ls(const CacheArguments& arguments, Invocation& invocation) {
  Json json = list_stores(arguments.dir);
  if (invocation.json) return print_document(json);
  const Json::Array& stores = json.find("stores")->array();
  for (const Json& store : stores) print(store_line(store));
  print("stores: " + std::to_string(stores.size()) + ", " + size_of(json) +
        " in " + arguments.dir + "\n");
}

void print_why(const Json& json) {
  const bool hit = std::get<bool>(json.find("hit")->value());
  print(std::string(hit ? "hit: the next run needs no scan"
                        : "miss: the next run scans ") +
        (hit ? "" : json.find("source")->string()) + "\n  " +
        json.find("why")->string() +
        "\n  store: " + json.find("store")->string() + "\n");
  if (const Json* nearest = json.find("nearest"))
    print("  nearest: " + nearest->string() + "\n");
  if (const Json* differs = json.find("differs"))
    for (const Json& part : differs->array())
      print("    " + part.find("part")->string() + ": " +
            part.find("stored")->dump() + " stored, " +
            part.find("now")->dump() + " now\n");
}

void run_why(const CacheArguments& arguments, Invocation& invocation) {
  const Json json = why_store(load_job(arguments.job, arguments.sets));
  if (invocation.json) return print_document(json);
  const Json* sources = json.find("sources");
  if (sources == nullptr) return print_why(json);
  std::int64_t number = 0;
  for (const Json& source : sources->array()) {
    print("sources[" + std::to_string(number++) + "]: ");
    print_why(source);
  }
}

void check_one_cache(const CacheArguments& arguments) {
  if (arguments.hub + arguments.datasets + arguments.store + arguments.stage >
      1)
    throw Error(
        ErrorKind::request,
        {.code = "cli.arguments",
         .what = "cannot prune several caches at once",
         .where = "the command line",
         .why = "more than one of --store, --stage, --hub and --datasets "
                "is named",
         .next = "prune one after the other"});
}

/// The end of a list of what goes: how to let it go.
void print_how_to_remove(const CacheArguments& arguments, bool some) {
  if (arguments.only_lists() && !arguments.dry && some)
    print("nothing was removed: add --yes\n");
}

/// What others have downloaded or made.
void prune_of_hf(const CacheArguments& arguments, Invocation& invocation) {
  const bool dry = arguments.only_lists();
  Json json =
      prune_datasets(default_hf_folders(), arguments.hub ? "hub" : "datasets",
                     std::chrono::days(arguments.unused_days), dry);
  json["removes"] = !dry;
  if (invocation.json) return print_document(json);
  for (const Json& set : json.find("removed")->array()) {
    const Json* why = set.find("why");
    const Json* failed = set.find("failed");
    print(set.find("path")->string() + "  " + size_of(set) + "  " +
          set.find("name")->string() + ", last used " +
          set.find("used")->string() +
          (why == nullptr ? "" : ", incomplete: " + why->string()) +
          (failed == nullptr ? "" : ": not removed: " + failed->string()) +
          "\n");
  }
  print((dry ? "would free " : "freed ") + size_of(json) + " in " +
        json.find("dir")->string() +
        ", kept: " + std::to_string(json.find("kept")->integer()) + "\n");
  print_how_to_remove(arguments, !json.find("removed")->array().empty());
}

/// Copies of the files of sources (source.stage): of the folder that is named,
/// or of RAM disk and cache folder.
void prune_staged(const CacheArguments& arguments, Invocation& invocation) {
  std::vector<std::filesystem::path> dirs = {arguments.dir};
  if (arguments.dir == default_store_dir().string())
    dirs = {folder_of_copies("ram"), folder_of_copies("disk")};
  Json all(Json::Array{});
  const bool dry = arguments.only_lists();
  for (const std::filesystem::path& dir : dirs) {
    Json json =
        prune_copies(dir, std::chrono::days(arguments.unused_days), dry);
    json["removes"] = !dry;
    all.push_back(std::move(json));
  }
  if (invocation.json) return print_document(all);
  bool some = false;
  for (const Json& json : all.array()) {
    for (const Json& copy : json.find("removed")->array()) {
      const Json* failed = copy.find("failed");
      print(copy.find("path")->string() + "  " + size_of(copy) +
            ", last used " + copy.find("used")->string() +
            (failed == nullptr ? "" : ": not removed: " + failed->string()) +
            "\n");
    }
    some |= !json.find("removed")->array().empty();
    print((dry ? "would free " : "freed ") + size_of(json) + " in " +
          json.find("dir")->string() + ", copies kept: " +
          std::to_string(json.find("kept")->integer()) + "\n");
  }
  print_how_to_remove(arguments, some);
}

void run_prune(const CacheArguments& arguments, Invocation& invocation) {
  check_one_cache(arguments);
  if (arguments.hub || arguments.datasets)
    return prune_of_hf(arguments, invocation);
  if (arguments.stage) return prune_staged(arguments, invocation);
  const bool dry = arguments.only_lists();
  Json json = prune_stores(arguments.dir,
                           std::chrono::days(arguments.unused_days), dry);
  json["removes"] = !dry;
  if (invocation.json) return print_document(json);
  for (const Json& store : json.find("removed")->array()) {
    const Json* failed = store.find("failed");
    print(store_line(
        store, failed == nullptr ? "" : ": not removed: " + failed->string()));
  }
  print((dry ? "would free " : "freed ") + size_of(json) + " in " +
        arguments.dir + ", stores kept: " +
        std::to_string(json.find("kept")->integer()) + "\n");
  print_how_to_remove(arguments, !json.find("removed")->array().empty());
}

void run_verify(const CacheArguments& arguments, Invocation& invocation) {
  Json json = verify_stores(arguments.dir);
  const Json::Array& stores = json.find("stores")->array();
  const std::int64_t sound = json.find("sound")->integer();
  if (sound < std::ssize(stores)) invocation.exit_code = 3;
  if (invocation.json) return print_document(json);
  for (const Json& store : stores) {
    const Json* damaged = store.find("damaged");
    print(store_line(store, damaged == nullptr
                                ? ": sound"
                                : ": damaged at " + damaged->string()));
  }
  print("sound: " + std::to_string(sound) + " of " +
        std::to_string(stores.size()) + " in " + arguments.dir + "\n");
}

RunVerb add_cache(Options& cache, Invocation& invocation) {
  auto arguments = std::make_shared<CacheArguments>();
  arguments->dir = default_store_dir().string();
  using Run = void (*)(const CacheArguments&, Invocation&);
  auto chosen = std::make_shared<Run>();
  auto add = [&](const char* name, const char* help, Run run) {
    Options options = cache.verb(name, help, [chosen, run] { *chosen = run; });
    add_json(options, invocation, "One JSON document");
    if (run != run_why)
      options.add("--dir", arguments->dir, "Folder of the stores");
    return options;
  };
  add("ls", "List the stores", run_ls);
  Options why =
      add("why", "Tell whether a job finds its rows in a store", run_why);
  why.add("job", arguments->job, "The job file", {.required = true});
  add_sets(why, arguments->sets);
  Options prune =
      add("prune", "List and remove stores that are no longer used", run_prune);
  prune.add("--unused-days", arguments->unused_days,
            "Only those unused for this long. 0: all",
            {.least = 0, .most = 36'500});
  prune.flag("--dry-run", arguments->dry,
             "List what would be removed, and remove nothing");
  prune.flag("--store", arguments->store,
             "Prune the stores. This is the default");
  prune.flag("--stage", arguments->stage,
             "Prune copies of source files (source.stage) instead of stores");
  prune.flag(
      "--hub", arguments->hub,
      "Prune data sets in the cache of the Hugging Face hub instead of stores");
  prune.flag("--datasets", arguments->datasets,
             "Prune what load_dataset() made of data sets instead of stores");
  prune.flag("--yes", arguments->yes,
             "Remove them. Without this option they are only listed");
  add("verify", "Read every byte of the stores", run_verify);
  return [arguments, chosen](Invocation& invoked) {
    (*chosen)(*arguments, invoked);
  };
}

}  // namespace

Verb cache_verb() {
  return {.name = "cache",
          .help = "Show, explain, check and remove rows kept on disk",
          .example = "penstock cache why job.json",
          .add = add_cache};
}

}  // namespace penstock
