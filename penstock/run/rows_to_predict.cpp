#include "penstock/run/rows_to_predict.h"

#include <algorithm>

namespace penstock {

bool has_columns(const Schema& schema, const Field& field) {
  return std::ranges::all_of(field.kind->facts().columns,
                             [&](const ColumnRequest& request) {
                               return schema.find(request.column) != nullptr;
                             });
}

bool guesses_types(const SourceSpec& spec) {
  const SourceKind* kind = source_kind(spec.kind);
  return kind != nullptr && kind->guesses_types;
}

std::unique_ptr<Source> open_rows_of(const SourceSpec& spec,
                                     const std::vector<Field>& fields,
                                     StopFlag stop) {
  const std::vector<ColumnRequest> requests = requests_of(fields);
  try {
    return open_source(spec, requests, {.stop = stop, .fitted = true});
  } catch (const Error& error) {
    if (error.parts().code != "source.no_key") throw;
    return open_source(spec, requests,
                       {.stop = stop, .keys = false, .fitted = true});
  }
}

}  // namespace penstock
