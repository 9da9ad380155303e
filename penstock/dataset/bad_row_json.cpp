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

}  // namespace penstock
