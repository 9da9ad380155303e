#include "penstock/dataset/table/table_origin.h"

#include <string>
#include <utility>

namespace penstock {
namespace {

void check_weights(const Drawing& drawing, const Source& source) {
  if (!drawing || drawing.balance) return;
  const ColumnType type = source.types().back();
  if (type.kind == ColumnKind::number || type == ColumnType::boolean) return;
  throw Error(ErrorKind::request,
              {.code = "sampling.weights",
               .what = "cannot draw rows by their weights",
               .where = "loader.weights",
               .why = "column '" + drawing.column + "' is " +
                      std::string(name_of(type)) + ", expected numbers",
               .next = "name a column of numbers; to draw each value of a "
                       "column equally often, use \"loader.balance\""});
}

void check_key(const Source& source) {
  if (source.abilities().by_key || source.abilities().by_position) return;
  throw Error(ErrorKind::request,
              {.code = "source.no_key",
               .what = "cannot identify the rows of " + source.shown(),
               .where = "source",
               .why = "the rows have neither keys nor positions",
               .next = "name a column whose values are unique as source.key"});
}

BlockParser::Options parsing_of(const TableDatasetOptions& options,
                                const BoundSource& source) {
  check_key(*source.source);
  check_weights(options.drawing, *source.source);
  BlockParser::Options parsing{.fields = source.fields,
                               .by_column = !options.split.by.empty(),
                               .by_name = options.split.by,
                               .drawing = options.drawing,
                               .parts = source.source->facts().parts,
                               .canonical = options.fingerprint.empty(),
                               .checks = options.checks};
  for (const Field& field : options.fields) parsing.names.push_back(field.name);
  for (const ColumnRequest& request : requests_of(options.fields))
    parsing.columns.push_back(request.column);
  if (!options.split.whole())
    parsing.side_of = [split = options.split](std::string_view by) {
      return static_cast<std::uint8_t>(penstock::side_of(split, by));
    };
  return parsing;
}

std::vector<std::size_t> elements_of(const std::vector<Field>& fields) {
  std::vector<std::size_t> bytes;
  for (const Field& field : fields)
    bytes.push_back(field.kind->facts().stored.element_bytes);
  return bytes;
}

// A run that is resumed brings the statistics that its rows were encoded with:
// its store is the one that was made when they were found, and else one of its
// own, which is also what is written.
std::vector<TableStore> stores_of(const TableDatasetOptions& options,
                                  const Source& source) {
  std::vector<TableStore> stores;
  if (!uses_stores(options)) return stores;
  for (const bool statistics : {false, true})
    if (statistics ? options.statistics.has_value()
                   : !options.remake || !options.statistics)
      stores.push_back(table_store(options, source, statistics));
  return stores;
}

}  // namespace

TableOrigin::TableOrigin(const TableDatasetOptions& of, BoundSource from)
    : options(of),
      source(from.source),
      bound(from.fields),
      layout(layout_of(of.fields)),
      parsing(parsing_of(of, from)),
      key_type(source->abilities().by_key ? source->facts().key
                                          : ColumnType::int64),
      element_bytes(elements_of(of.fields)),
      runs_alone(layout.row_bytes == 0 && of.fields.size() == 1),
      stores(stores_of(of, *source)) {}

}  // namespace penstock
