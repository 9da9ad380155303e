#include "penstock/dataset/dataset_base.h"

#include <algorithm>

#include "penstock/dataset/packed/later_rows.h"

namespace penstock {
namespace {

Json statistics_of(const std::vector<MixedRows>& parts) {
  std::vector<Json> all;
  for (const MixedRows& part : parts) {
    all.push_back(part.rows->statistics());
    if (all.back().is_null()) all.back() = Json(Json::Object{});
  }
  Json shared(Json::Object{});
  bool differ = false;
  for (const auto& [field, found] : all.front().object()) {
    const bool same =
        std::ranges::all_of(all, [&, name = field](const Json& of) {
          const Json* there = of.find(name);
          return there != nullptr && *there == *all.front().find(name);
        });
    if (same) shared[field] = found;
  }
  Json::Array list;
  for (const Json& of : all) {
    Json rest(Json::Object{});
    for (const auto& [field, found] : of.object())
      if (shared.find(field) == nullptr) rest[field] = found;
    differ |= !rest.object().empty();
    list.push_back(std::move(rest));
  }
  if (differ) shared["sources"] = Json(std::move(list));
  return shared;
}

}  // namespace

std::vector<const FittedFields*> DatasetFacts::all_fitted() const {
  std::vector<const FittedFields*> all;
  if (fitted != nullptr) all.push_back(fitted.get());
  for (const MixedRows& part : parts)
    if (part.rows->facts().fitted != nullptr)
      all.push_back(part.rows->facts().fitted.get());
  return all;
}

Json Dataset::statistics() const {
  if (facts_.later != nullptr) {
    const std::shared_ptr<const Dataset> rows = facts_.later->rows();
    return rows == nullptr ? Json() : rows->statistics();
  }
  if (!facts_.parts.empty()) return statistics_of(facts_.parts);
  if (facts_.fitted == nullptr) return {};
  const std::vector<Field>& fields = facts_.fitted->fields;
  const std::vector<Json>& statistics = facts_.fitted->statistics;
  const bool scanned = facts_.scan != nullptr;
  Json all = scanned ? Json(Json::Object{}) : Json();
  for (std::size_t f = 0; f < statistics.size(); ++f)
    if (scanned || !statistics[f].is_null())
      all[fields[f].name] = statistics[f];
  return all;
}

}  // namespace penstock
