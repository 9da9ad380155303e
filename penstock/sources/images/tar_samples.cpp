#include "penstock/sources/images/tar_samples.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_set>

#include "penstock/base/hash.h"
#include "penstock/base/log.h"

namespace penstock::images {
namespace {

std::string members_of(std::string_view one, std::string_view other) {
  return "the members '" + std::string(one) + "' and '" + std::string(other) +
         "'";
}

[[noreturn]] void refuse_sample(const std::string& path, const Media& media,
                                std::string_view one, std::string_view other) {
  const std::string kind = media.one;
  const std::string column = media.column, field = media.kind_of_field;
  refuse("images.tar", path,
         members_of(one, other) + " are " + kind + "s of one sample, '" +
             std::string(sample_of(one)) + "', but a row has one " + kind,
         "unpack the file, and name the " + kind +
             "s in a table, with a column for each: {\"" + field +
             "\": {\"column\": \"" + column + "\", \"folder\": \"FOLDER\"}}");
}

}  // namespace

// WebDataset's convention: members of one sample have the same path up to the
// first '.' of the file's name.
std::string_view sample_of(std::string_view name) {
  const std::size_t folder = name.rfind('/');
  return name.substr(0, name.find('.', folder == name.npos ? 0 : folder));
}

void check_samples(const std::string& path, const Media& media,
                   const std::vector<FoundPicture>& pictures,
                   const std::set<std::string, std::less<>>& others) {
  std::vector<std::string_view> names;
  names.reserve(pictures.size());
  for (const FoundPicture& picture : pictures) names.push_back(picture.name);
  std::ranges::sort(names, {}, [](std::string_view name) {
    return std::pair(sample_of(name), name);
  });
  std::unordered_set<std::string> parts;  // of samples with several pictures
  std::optional<std::pair<std::string_view, std::string_view>> first;
  for (std::size_t at = 0, end = 0; at < names.size(); at = end) {
    const std::string_view sample = sample_of(names[at]);
    std::string of_sample;
    for (end = at; end < names.size() && sample_of(names[end]) == sample; ++end)
      of_sample.append(names[end].substr(sample.size())).push_back('/');
    if (end - at < 2) continue;
    if (others.contains(sample) || !parts.insert(std::move(of_sample)).second)
      refuse_sample(path, media, names[at], names[at + 1]);
    if (!first) first.emplace(names[at], names[at + 1]);
  }
  if (first)
    log(LogLevel::warning,
        path + ": " + members_of(first->first, first->second) +
            " become separate rows, although WebDataset uses the part before "
            "the first '.' as the name of one sample");
}

}  // namespace penstock::images
