#include "penstock/dataset/bad_row_json.h"

namespace penstock {

Json json_of(const BadRow& bad) {
  Json json;
  json["key"] = bad.key;
  json["shown_key"] = bad.shown_key;
  json["column"] = bad.column;
  json["why"] = bad.why;
  json["byte"] = bad.byte;
  return json;
}

BadRow bad_row_of(const Json& json) {
  return {.key = *json.find("key"),
          .shown_key = json.find("shown_key")->string(),
          .column = json.find("column")->string(),
          .why = json.find("why")->string(),
          .byte = json.find("byte")->integer()};
}

Json json_of(const DamagedRows& rows) {
  Json list(Json::Array{});
  for (const auto& [id, fault] : rows) {
    Json one;
    one["id"] = id;
    one["column"] = fault.place;
    one["why"] = fault.why;
    list.push_back(std::move(one));
  }
  return list;
}

DamagedRows damaged_rows_of(const Json& json) {
  DamagedRows rows;
  for (const Json& one : json.array())
    rows.emplace(one.find("id")->integer(),
                 RowFault{.place = one.find("column")->string(),
                          .why = one.find("why")->string(),
                          .damaged = true});
  return rows;
}

}  // namespace penstock
