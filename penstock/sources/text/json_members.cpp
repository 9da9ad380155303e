#include "penstock/sources/text/json_members.h"

namespace penstock::text {
namespace {

/// Of keys with dots: a file that has more of them is read more slowly.
constexpr std::size_t kMostKeys = std::size_t{1} << 20;

}  // namespace

// Members of lines mostly come in one order, so the caller first compares with
// the member at `next`; only a miss comes here. A key with dots is put under
// its whole name once, so that it also is found at once from then on; there is
// a bound to that, as keys may differ in each line.
JsonMembers::Member* JsonMembers::find(std::string_view key,
                                       std::size_t& next) {
  auto known = by_name.find(key);
  if (known == by_name.end()) {
    Member* found = inner(key);
    if (found == nullptr || all.size() >= kMostKeys) return found;
    // From now on it is found like a member that has no dot.
    Member whole = *found;
    whole.name = Name(key);
    known = by_name.emplace(key, all.size()).first;
    all.push_back(std::move(whole));
  }
  next = known->second + 1;
  return &all[known->second];
}

JsonMembers::Member* JsonMembers::inner(std::string_view key) {
  if (key.find('.') == key.npos) return nullptr;
  JsonMembers* level = this;
  for (std::size_t begin = 0;;) {
    const std::size_t dot = key.find('.', begin);
    const auto found = level->by_name.find(key.substr(begin, dot - begin));
    if (found == level->by_name.end()) return nullptr;
    Member& member = level->all[found->second];
    if (dot == key.npos) return &member;
    level = member.members;
    if (level == nullptr) return nullptr;
    begin = dot + 1;
  }
}

void JsonTree::add(std::string_view path, std::int64_t column,
                   const Paths& paths) {
  JsonMembers* level = &top();
  for (std::size_t begin = 0;;) {
    const std::size_t dot = path.find('.', begin);
    const std::string_view name = path.substr(begin, dot - begin);
    const auto [known, is_new] =
        level->by_name.try_emplace(std::string(name), level->all.size());
    if (is_new) {
      const auto seen = paths.find(path.substr(0, dot));
      level->all.push_back(
          {.name = Name(name),
           .path = seen == paths.end() ? JsonPath::unknown : seen->second});
    }
    JsonMembers::Member& member = level->all[known->second];
    if (dot == path.npos) {
      member.column = column;
      return;
    }
    if (member.members == nullptr) member.members = &levels_.emplace_back();
    level = member.members;
    begin = dot + 1;
  }
}

}  // namespace penstock::text
