#include "penstock/dataset/row_place.h"

namespace penstock {

Json row_name(const Source& source, std::int64_t position) {
  const SourceFacts& facts = source.facts();
  const bool named = facts.abilities.by_position && facts.parts != nullptr &&
                     facts.key == ColumnType::text;
  if (!named || position < 0) return Json(position);
  const std::size_t part = facts.parts->part_of(position);
  if (part == facts.parts->size()) return Json(position);
  return Json(std::string(facts.parts->name(part)));
}

std::string shown_row(const Source& source, const KeyList& keys,
                      std::int64_t at) {
  const std::string shown = "row " + keys.shown(at);
  if (keys.type() != ColumnType::int64 || source.abilities().by_key)
    return shown;
  const std::int64_t position = keys.integer(at);
  const Json name = row_name(source, position);
  if (name.is_string()) return "row '" + name.string() + "'";
  const std::string place = source.place_of(position);
  return place.empty() ? shown : shown + " (" + place + ")";
}

void add_places(const Source& source, std::vector<BadRow>& bad) {
  for (BadRow& row : bad) {
    if (!std::holds_alternative<std::int64_t>(row.key.value())) continue;
    const std::int64_t position = row.key.integer();
    row.key = row_name(source, position);
    if (row.key.is_string()) {
      row.shown_key = "'" + row.key.string() + "'";
      continue;
    }
    const std::string place = source.place_of(position);
    if (!place.empty() && row.why.find("(" + place) == row.why.npos)
      row.why += " (" + place + ")";
  }
}

void add_row_place(const RowParts* parts, std::int64_t position,
                   std::string& place) {
  if (parts == nullptr || position < 0) return;
  const std::size_t part = parts->part_of(position);
  if (part == parts->size()) return;
  const std::int64_t first = parts->begin(part);
  if (parts->end(part) - first > 1)
    place += " of row " + std::to_string(position - first + 1);
  place += " of '" + std::string(parts->name(part)) + "'";
}

}  // namespace penstock
