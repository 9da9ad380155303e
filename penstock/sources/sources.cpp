#include "penstock/sources/sources.h"

#include "penstock/base/plugin.h"
#include "penstock/sources/plugin.h"

namespace penstock {

std::unique_ptr<Source> open_source(const SourceSpec& spec,
                                    const std::vector<ColumnRequest>& requests,
                                    SourceOptions options) {
  return load_part(spec.kind, plugin_folders())
      .open_source(spec, requests, options);
}

Schema read_schema(const SourceSpec& spec) {
  return load_part(spec.kind, plugin_folders()).read_schema(spec);
}

std::unique_ptr<TableWriter> create_table(const SourceSpec& spec,
                                          const std::vector<NewColumn>& columns,
                                          bool replace) {
  return load_part(spec.kind, plugin_folders())
      .create_table(spec, columns, replace);
}

}  // namespace penstock
