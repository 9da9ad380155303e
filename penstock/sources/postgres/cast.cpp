#include "penstock/sources/postgres/cast.h"

namespace penstock::postgres {
namespace {

/// A number of the SQL type `to` ("float8", "bigint").
std::string number_of(Kind kind, const SqlType& type, const std::string& name,
                      const std::string& to) {
  // The place of a label among all of its type, from 0.
  if (type.category == 'E')
    return "array_position(enum_range(NULL::" + type.base + "), " + name +
           "::" + type.base + ") - 1";
  if (type.category == 'A') return name + "[1]::" + to;
  if (type.category == 'R') return "lower(" + name + ")::" + to;
  if (type.category == 'T' || type.category == 'D')
    return "extract(epoch FROM " + name + ")::" + to;
  if (type.base == "money") return name + "::numeric::" + to;
  if (kind == Kind::json || kind == Kind::jsonb)
    return "(" + name + " ->> 'key')::" + to;
  if (type.category == 'N' || type.category == 'S')
    return name + "::text::" + to;
  return "";
}

}  // namespace

const char* expected_of(ReadAs as) {
  switch (as) {
    case ReadAs::key:
      return "an integer, text or uuid";
    case ReadAs::number:
      return "a number or a time";
    case ReadAs::integer:
      return "an integer";
    case ReadAs::json:
      return "json, jsonb or text";
    case ReadAs::value:
      break;
  }
  return "a value";
}

std::string cast_of(ReadAs as, Kind kind, const SqlType& type,
                    const std::string& name) {
  switch (as) {
    case ReadAs::key:
      return name + (kind == Kind::numeric ? "::bigint" : "::text");
    case ReadAs::number:
      return number_of(kind, type, name, "float8");
    case ReadAs::integer:
      return number_of(kind, type, name, "bigint");
    case ReadAs::json:
      return "to_json(" + name + ")";
    case ReadAs::value:
      break;
  }
  return "";
}

}  // namespace penstock::postgres
