#include <algorithm>

#include "penstock/dataset/filler.h"

namespace penstock {
namespace {

/// The distinct names among those of the fields, in their order.
std::string joined(const std::vector<Field>& fields,
                   std::string FieldWork::*name) {
  std::vector<std::string> names;
  for (const Field& field : fields) {
    std::string own = field.kind->facts().work.*name;
    if (!own.empty() && std::ranges::find(names, own) == names.end())
      names.push_back(std::move(own));
  }
  std::string all;
  for (const std::string& each : names)
    all += (all.empty() ? "" : " and ") + each;
  return all;
}

}  // namespace

StageNames stage_names(const std::vector<Field>& fields) {
  StageNames names;
  if (std::string parsing = joined(fields, &FieldWork::parsing);
      !parsing.empty())
    names.parse = std::move(parsing);
  if (std::string making = joined(fields, &FieldWork::making);
      !making.empty()) {
    // Batches of one loader may come from both, as while rows are prepared
    // beside the first epoch: one name each.
    names.gather = making + " kept rows";
    names.make = std::move(making);
  }
  return names;
}

}  // namespace penstock
