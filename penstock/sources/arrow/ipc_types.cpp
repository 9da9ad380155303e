#include "penstock/sources/arrow/ipc_types.h"

#include <stdexcept>

namespace penstock::arrow_files {
namespace {

/// The union Type of Schema.fbs.
enum class IpcType : std::uint8_t {
  none,
  null,
  integer,
  floating,
  binary,
  utf8,
  boolean,
  decimal,
  date,
  time,
  timestamp,
  interval,
  list,
  structure,
  sum,
  fixed_binary,
  fixed_list,
  map,
  duration,
  large_binary,
  large_utf8,
  large_list,
  run_ends,
  binary_view,
  utf8_view,
  list_view,
  large_list_view
};

// Flags of a schema in the C data interface.
constexpr std::int64_t kOrdered = 1, kNullable = 2;

constexpr char kTimeUnits[] = {'s', 'm', 'u', 'n'};

char time_unit(const Flatbuffer& of, std::size_t type, std::int16_t missing) {
  return kTimeUnits[of.value<std::int16_t>(type, 0, missing) & 3];
}

std::string integer_format(const Flatbuffer& of, std::size_t type) {
  const bool is_signed = of.value<std::uint8_t>(type, 1, 0) != 0;
  switch (of.value<std::int32_t>(type, 0, 0)) {
    case 8:
      return is_signed ? "c" : "C";
    case 16:
      return is_signed ? "s" : "S";
    case 32:
      return is_signed ? "i" : "I";
    case 64:
      return is_signed ? "l" : "L";
    default:
      throw std::runtime_error("an integer of an unknown width");
  }
}

std::string decimal_format(const Flatbuffer& of, std::size_t type) {
  const auto bits = of.value<std::int32_t>(type, 2, 128);
  return "d:" + std::to_string(of.value<std::int32_t>(type, 0, 0)) + "," +
         std::to_string(of.value<std::int32_t>(type, 1, 0)) +
         (bits == 128 ? "" : "," + std::to_string(bits));
}

/// Of types without parameters; null for others.
const char* plain_format(IpcType kind) {
  switch (kind) {
    case IpcType::null:
      return "n";
    case IpcType::binary:
      return "z";
    case IpcType::utf8:
      return "u";
    case IpcType::boolean:
      return "b";
    case IpcType::list:
      return "+l";
    case IpcType::structure:
      return "+s";
    case IpcType::map:
      return "+m";
    case IpcType::large_binary:
      return "Z";
    case IpcType::large_utf8:
      return "U";
    case IpcType::large_list:
      return "+L";
    case IpcType::run_ends:
      return "+r";
    case IpcType::binary_view:
      return "vz";
    case IpcType::utf8_view:
      return "vu";
    case IpcType::list_view:
      return "+vl";
    case IpcType::large_list_view:
      return "+vL";
    default:
      return nullptr;
  }
}

std::string format_of(const Flatbuffer& of, IpcType kind, std::size_t type) {
  if (const char* plain = plain_format(kind)) return plain;
  const auto number = [&](std::int32_t missing) {
    return std::to_string(of.value<std::int32_t>(type, 0, missing));
  };
  switch (kind) {
    case IpcType::integer:
      return integer_format(of, type);
    case IpcType::floating:
      return std::string(1, "efg?"[of.value<std::int16_t>(type, 0, 0) & 3]);
    case IpcType::decimal:
      return decimal_format(of, type);
    case IpcType::date:
      return of.value<std::int16_t>(type, 0, 1) == 0 ? "tdD" : "tdm";
    case IpcType::time:
      return std::string("tt") + time_unit(of, type, 1);
    case IpcType::timestamp:
      return std::string("ts") + time_unit(of, type, 0) + ":" +
             std::string(of.text_of(type, 1));
    case IpcType::interval:
      return std::string("ti") + "MDn?"[of.value<std::int16_t>(type, 0, 0) & 3];
    case IpcType::sum:
      return of.value<std::int16_t>(type, 0, 0) == 0 ? "+us:" : "+ud:";
    case IpcType::fixed_binary:
      return "w:" + number(0);
    case IpcType::fixed_list:
      return "+w:" + number(0);
    case IpcType::duration:
      return std::string("tD") + time_unit(of, type, 1);
    default:
      break;
  }
  throw std::runtime_error("a field of an unknown type");
}

IpcField field_at(const Flatbuffer& of, std::size_t table, int depth) {
  constexpr int kMostDepth = 64;
  if (depth > kMostDepth) throw std::runtime_error("fields nested too deeply");
  IpcField field{
      .name = std::string(of.text_of(table, 0)),
      .format = format_of(of, IpcType(of.value<std::uint8_t>(table, 2, 0)),
                          of.table_of(table, 3)),
      .flags = of.value<std::uint8_t>(table, 1, 0) != 0 ? kNullable : 0};
  const Flatbuffer::Vector children = of.vector_of(table, 5, 4);
  for (std::size_t at = 0; at < children.count; ++at)
    field.children.push_back(
        field_at(of, of.follow(children.first + 4 * at), depth + 1));
  if (of.field(table, 4) == 0) return field;
  const std::size_t dictionary = of.table_of(table, 4);
  IpcField indices{
      .name = field.name,
      .format = of.field(dictionary, 1) == 0
                    ? "i"
                    : integer_format(of, of.table_of(dictionary, 1)),
      .flags = field.flags |
               (of.value<std::uint8_t>(dictionary, 2, 0) != 0 ? kOrdered : 0),
      .dictionary = of.value<std::int64_t>(dictionary, 0, 0)};
  indices.values.push_back(std::move(field));
  return indices;
}

}  // namespace

std::vector<IpcField> ipc_fields(const Flatbuffer& of, std::size_t schema) {
  std::vector<IpcField> fields;
  const Flatbuffer::Vector tables = of.vector_of(schema, 1, 4);
  for (std::size_t at = 0; at < tables.count; ++at)
    fields.push_back(field_at(of, of.follow(tables.first + 4 * at), 0));
  return fields;
}

std::string ipc_metadata(const Flatbuffer& of, std::size_t schema) {
  std::string metadata;
  const auto add_number = [&](std::size_t number) {
    const auto narrow = static_cast<std::int32_t>(number);
    metadata.append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
  };
  const Flatbuffer::Vector pairs = of.vector_of(schema, 2, 4);
  add_number(pairs.count);
  for (std::size_t at = 0; at < pairs.count; ++at) {
    const std::size_t pair = of.follow(pairs.first + 4 * at);
    for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
      const std::string_view text = of.text_of(pair, which);
      add_number(text.size());
      metadata += text;
    }
  }
  return metadata;
}

}  // namespace penstock::arrow_files
