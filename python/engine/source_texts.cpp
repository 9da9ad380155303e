#include "python/engine/source_texts.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/engine/file_text.h"
#include "python/engine/interruptible.h"

namespace nb = nanobind;

namespace penstock::python {
namespace {

/// By column; nullopt: a row has none.
using Texts = std::vector<std::vector<std::optional<std::string>>>;

Texts read_texts(const SourceSpec& spec, const std::vector<std::string>& names,
                 StopFlag stop) {
  std::vector<ColumnRequest> requests;
  for (const std::string& name : names)
    requests.push_back({.column = name,
                        .as = ReadAs::value,
                        .setting = "columns",
                        .coded = true});
  const auto source =
      open_source(spec, requests, {.stop = stop, .keys = false});
  Texts texts(names.size());
  for (const Partition& part : source->partitions(1))
    source->open_reader()->scan(part, {}, [&](KeyList&, Block& block) {
      for (std::size_t at = 0; at < texts.size(); ++at)
        for (std::int64_t row = 0; row < block.rows; ++row) {
          const Column& column = block.columns[at];
          std::optional<std::string>& text = texts[at].emplace_back();
          if (column.valid(row)) text = column.text(row);
        }
      end_if_stopped(stop);
      return true;
    });
  return texts;
}

nb::list texts_of_columns(const std::string& section,
                          const std::vector<std::string>& columns) {
  const auto texts = interruptible<Texts>([section, columns](const Stop& stop) {
    return read_texts(
        parse_source_spec(Json::parse(section, "the source"), "source"),
        columns, StopFlag(stop.get()));
  });
  nb::list all;
  for (const auto& column : texts) {
    nb::list values;
    for (const std::optional<std::string>& text : column)
      values.append(text ? file_text(*text) : nb::none());
    all.append(values);
  }
  return all;
}

}  // namespace

void bind_source_texts(nb::module_& module) {
  module.def("source_texts", &texts_of_columns, nb::arg("section"),
             nb::arg("columns"),
             nb::sig("def source_texts(section: str, columns: "
                     "collections.abc.Sequence[str]) -> "
                     "list[list[str | None]]"));
}

}  // namespace penstock::python
