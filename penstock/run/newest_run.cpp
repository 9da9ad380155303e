#include "penstock/run/newest_run.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>
#include <vector>

#include "penstock/report/report.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

/// What makes two jobs the same.
Json identity_of(const Json& document) {
  Json kept{Json::Object{}};
  for (const auto& [section, value] : document.object()) {
    if (section == "output") continue;
    if (section != "train" || !value.is_object()) {
      kept[section] = value;
      continue;
    }
    Json train{Json::Object{}};
    for (const auto& [key, setting] : value.object())
      if (key != "epochs" && key != "max_steps") train[key] = setting;
    if (!train.object().empty()) kept[section] = std::move(train);
  }
  return Json::parse(kept.dump(), "the job");  // numbers as in a file
}

/// A folder without a state has nothing to go on from: it is of a run that was
/// killed while it was made.
bool is_of(const fs::path& folder, const Json& identity) {
  std::error_code none;
  if (!fs::exists(folder / "state.json", none) &&
      !fs::exists(folder / "folds", none))
    return false;
  std::string why;
  const std::optional<Json> run = document_in(folder / "run.json", why);
  const Json* job = run ? run->find("job") : nullptr;
  return job != nullptr && job->is_object() && identity_of(*job) == identity;
}

}  // namespace

// The names of run folders begin with the time, so they sort by it.
std::optional<std::string> newest_run(const Job& job) {
  std::error_code none;
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(job.output.dir, none))
    if (entry.is_directory(none) && !entry.is_symlink(none))
      folders.push_back(entry.path());
  std::ranges::sort(folders, std::greater());
  const Json identity = identity_of(without_secrets(job.document));
  const auto found = std::ranges::find_if(
      folders, [&](const fs::path& folder) { return is_of(folder, identity); });
  if (found == folders.end()) return std::nullopt;
  return found->string();
}

std::string newest_run_or_begin(const Job& job, bool or_begin) {
  const std::optional<std::string> found = newest_run(job);
  if (found || or_begin) return found.value_or("");
  throw Error(ErrorKind::request,
              {.code = "resume.no_run",
               .what = "cannot resume the newest run",
               .where = job.output.dir,
               .why = "the folder holds no run of this job",
               .next = "leave out --resume latest, or add --or-begin to begin "
                       "a run if the job has none yet"});
}

}  // namespace penstock
