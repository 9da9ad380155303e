#include "penstock/sources/hdf5/pytables.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace penstock::hdf5 {
namespace {

using Is = ValueType::Is;

std::string class_of(const Json& attributes) {
  const Json* found =
      attributes.is_object() ? attributes.find("CLASS") : nullptr;
  return found != nullptr && found->is_string() ? found->string() : "";
}

/// The names in a list that Python pickled by protocol 0, one opcode a line:
/// "(lp0\nVa\np1\naI7\na." is ["a", 7]. None where it holds anything else than
/// plain texts and numbers.
std::vector<std::string> pickled_names(std::string_view pickle) {
  if (!pickle.starts_with("(lp") || !pickle.ends_with(".")) return {};
  pickle.remove_suffix(1);
  std::vector<std::string> names;
  for (std::size_t at = pickle.find('\n'); at != pickle.npos;) {
    const std::size_t end = pickle.find('\n', at + 1);
    std::string_view line = pickle.substr(at + 1, end - at - 1);
    at = end;
    if (line.starts_with('a')) line.remove_prefix(1);  // append the one before
    if (line.empty() || line[0] == 'p') continue;      // remember it
    const bool plain = std::ranges::all_of(
        line, [](char c) { return c > ' ' && c <= '~' && c != '\\'; });
    if (!plain || (line[0] != 'V' && line[0] != 'I')) return {};
    names.emplace_back(line.substr(1));
  }
  return names;
}

}  // namespace

bool is_index_of_pytables(const Json& attributes) {
  return class_of(attributes) == "TINDEX";
}

bool is_of_pytables(const std::string& name, const Json& all) {
  const std::string is = class_of(all);
  for (const char* kind :
       {"TABLE", "ARRAY", "CARRAY", "EARRAY", "VLARRAY", "GROUP"})
    if (is == kind)
      return name == "CLASS" || name == "TITLE" || name == "VERSION" ||
             name == "NROWS" || name == "FLAVOR" || name == "EXTDIM" ||
             name == "PYTABLES_FORMAT_VERSION" || name.starts_with("FIELD_") ||
             name.starts_with("values_block_") || name == "index_kind" ||
             all.find("pandas_type") != nullptr;
  return false;
}

namespace {

/// The names of the columns in a block; none where they are unknown or one is
/// there twice.
std::vector<std::string> columns_in(const DataSet& set, std::size_t member) {
  const ValueType& block = set.type.inner[member];
  const Json* kind =
      set.attributes.find(set.type.members[member].first + "_kind");
  if (kind == nullptr || !kind->is_string() || block.is != Is::array) return {};
  std::vector<std::string> names = pickled_names(kind->string());
  if (block.dims != std::vector{std::ssize(names)}) return {};
  std::vector<std::string> all = names;
  for (const auto& [name, at] : set.type.members) all.push_back(name);
  std::ranges::sort(all);
  if (std::ranges::adjacent_find(all) != all.end()) names.clear();
  return names;
}

}  // namespace

// DataFrame.to_hdf(format="table") writes one compound for each row: "index"
// and blocks "values_block_N", each an array of all columns of one dtype. Which
// columns these are is the attribute "values_block_N_kind", a pickled list.
// Here each array becomes as many members, at the offsets of its elements, so
// that the frame's columns have the names that they had in pandas.
ValueType with_columns_of_pandas(const DataSet& set) {
  if (set.type.is != Is::compound || class_of(set.attributes) != "TABLE")
    return set.type;
  ValueType type = set.type;
  type.members.clear();
  type.inner.clear();
  for (std::size_t m = 0; m < set.type.members.size(); ++m) {
    const auto& [name, at] = set.type.members[m];
    const ValueType& block = set.type.inner[m];
    const std::vector<std::string> names = columns_in(set, m);
    if (names.empty()) {
      type.members.emplace_back(name, at);
      type.inner.push_back(block);
      continue;
    }
    for (std::size_t column = 0; column < names.size(); ++column) {
      type.members.emplace_back(
          names[column],
          at + static_cast<std::int64_t>(column) * block.inner[0].bytes);
      type.inner.push_back(block.inner[0]);
    }
  }
  return type;
}

}  // namespace penstock::hdf5
