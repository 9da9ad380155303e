#include "penstock/sources/postgres/kind.h"

namespace penstock::postgres {

Kind kind_of(std::uint32_t oid) {
  switch (oid) {  // pg_type.dat of PostgreSQL
    case 16:
      return Kind::boolean;
    case 20:
      return Kind::int8;
    case 21:
      return Kind::int2;
    case 23:
      return Kind::int4;
    case 17:
      return Kind::bytea;
    case 27:
      return Kind::ctid;
    case 25:
    case 1043:  // varchar
      return Kind::text;
    case 114:
      return Kind::json;
    case 700:
      return Kind::float4;
    case 701:
      return Kind::float8;
    case 1005:
      return Kind::int2_array;
    case 1007:
      return Kind::int4_array;
    case 1016:
      return Kind::int8_array;
    case 1021:
      return Kind::float4_array;
    case 1022:
      return Kind::float8_array;
    case 1042:  // char(n)
      return Kind::padded_text;
    case 1082:
      return Kind::date;
    case 1114:
      return Kind::timestamp;
    case 1184:
      return Kind::timestamptz;
    case 1186:
      return Kind::interval;
    case 1700:
      return Kind::numeric;
    case 2950:
      return Kind::uuid;
    case 3802:
      return Kind::jsonb;
    default:
      return Kind::other;
  }
}

const char* sql_name(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "boolean";
    case Kind::int2:
      return "smallint";
    case Kind::int4:
      return "integer";
    case Kind::int8:
      return "bigint";
    case Kind::float4:
      return "real";
    case Kind::float8:
      return "double precision";
    case Kind::numeric:
      return "numeric";
    case Kind::text:
      return "text";
    case Kind::padded_text:
      return "character";
    case Kind::json:
      return "json";
    case Kind::jsonb:
      return "jsonb";
    case Kind::date:
      return "date";
    case Kind::timestamp:
      return "timestamp";
    case Kind::timestamptz:
      return "timestamp with time zone";
    case Kind::uuid:
      return "uuid";
    case Kind::interval:
      return "interval";
    case Kind::bytea:
      return "bytea";
    case Kind::int2_array:
      return "smallint[]";
    case Kind::int4_array:
      return "integer[]";
    case Kind::int8_array:
      return "bigint[]";
    case Kind::float4_array:
      return "real[]";
    case Kind::float8_array:
      return "double precision[]";
    case Kind::vector:
      return "vector";
    case Kind::ctid:
      return "tid";
    case Kind::enumeration:
    case Kind::other:
      break;
  }
  return "of another type";
}

std::size_t width_of(Kind kind) {
  switch (kind) {
    case Kind::int2:
      return 2;
    case Kind::int4:
    case Kind::float4:
      return 4;
    case Kind::int8:
    case Kind::float8:
      return 8;
    default:
      return 0;
  }
}

}  // namespace penstock::postgres
