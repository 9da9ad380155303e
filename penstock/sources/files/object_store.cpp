#include "penstock/sources/files/object_store.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "penstock/base/ascii.h"
#include "penstock/base/base.h"
#include "penstock/base/utf8.h"
#include "penstock/sources/kinds.h"

namespace penstock::files {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr std::array<std::string_view, 4> kOptions = {
    "region", "endpoint_override", "scheme", "anonymous"};

[[noreturn]] void refuse(std::string why) {
  throw Error(
      ErrorKind::request,
      {.code = "source.uri",
       .what = "cannot use a source in an object store",
       .where = "source.path, s3://*** (not shown: it may hold credentials)",
       .why = std::move(why),
       .next = "write s3://BUCKET/PATH, or s3://BUCKET/PATH?region=REGION; "
               "credentials come from AWS_ACCESS_KEY_ID and "
               "AWS_SECRET_ACCESS_KEY, or from AWS_PROFILE"});
}

/// What to do, by what the store says.
std::string advice(const std::string& says) {
  struct Known {
    const char* word;
    const char* next;
  };
  static constexpr Known kKnown[] = {
      {"NO_SUCH_BUCKET", "check the bucket's name, and AWS_REGION"},
      {"ACCESS_DENIED",
       "check the credentials (AWS_ACCESS_KEY_ID, AWS_PROFILE) and what they "
       "may read; for a public bucket add ?anonymous=true"},
      {"FORBIDDEN", "check the credentials and what they may read"},
      {"INVALID_ACCESS_KEY_ID", "check AWS_ACCESS_KEY_ID, or AWS_PROFILE"},
      {"SIGNATURE", "check AWS_SECRET_ACCESS_KEY"},
      {"EXPIRED", "get new credentials: these have expired"},
      {"NETWORK_CONNECTION",
       "check the network, and AWS_ENDPOINT_URL or endpoint_override"},
      {"301", "name the bucket's region: AWS_REGION, or ?region=REGION"},
  };
  const std::string upper = ascii_upper(says);
  for (const Known& known : kKnown)
    if (upper.find(known.word) != upper.npos) return known.next;
  return "try again; the store's message is shown above";
}

}  // namespace

void refuse_stored(const std::string& path, std::string says) {
  says = beginning(says, 300);
  std::ranges::replace(says, '\n', ' ');
  throw Error(ErrorKind::source, {.code = "files.store",
                                  .what = "cannot read the object",
                                  .where = path,
                                  .why = "the store reports: " + says,
                                  .next = advice(says)});
}

bool is_stored(const std::string& path) { return path.starts_with(kScheme); }

std::string path_of_stored(const std::string& uri) {
  return uri.substr(0, uri.find('?'));
}

// URIs are written to logs, reports and checkpoints, so one that carries
// credentials ("s3://KEY:SECRET@bucket") is refused, and the refusal does not
// repeat it. Options are a list of allowed names for the same reason.
void check_stored(const std::string& uri) {
  const std::string path = path_of_stored(uri);
  const std::size_t end = std::min(path.find('/', kScheme.size()), path.size());
  const std::string bucket = path.substr(kScheme.size(), end - kScheme.size());
  if (bucket.find_first_of("@:") != bucket.npos)
    refuse("the address has credentials or a host before the bucket");
  if (bucket.empty()) refuse("the address names no bucket");
  for (std::size_t at = path.size() + 1; at < uri.size();) {
    const std::size_t next = std::min(uri.find('&', at), uri.size());
    const std::string option = uri.substr(at, next - at);
    const std::string name = option.substr(0, option.find('='));
    if (std::ranges::find(kOptions, name) == kOptions.end())
      refuse(
          "the address has an unknown option after '?', expected region, "
          "endpoint_override, scheme or anonymous");
    if (option.find('@') != option.npos || option.find("%40") != option.npos)
      refuse("the value of '" + name + "' has an '@', as credentials have");
    at = next + 1;
  }
}

std::shared_ptr<const ObjectStore> connect_store(const std::string& uri) {
  check_stored(uri);
  const auto& kinds = source_kinds();
  const auto kind = std::ranges::find_if(
      kinds, [](const SourceKind& of) { return of.choice.store != nullptr; });
  PENSTOCK_ASSERT(kind != kinds.end(), "Arrow's kinds reach object stores");
  return kind->choice.store(uri);
}

}  // namespace penstock::files
