#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/sources/files/file_set.h"
#include "penstock/sources/files/file_source.h"
#include "penstock/sources/hdf5/hdf5_file.h"

namespace penstock {

// In the descriptor.
SourceKind hdf5_source();

namespace hdf5 {
namespace {

/// The kind, as what these requests read decides about the rows.
files::FileKind kind_of(const std::vector<ColumnRequest>& requests) {
  std::vector<WindowsOf> windows;
  for (const ColumnRequest& request : requests)
    if (request.window > 0)
      windows.push_back({.path = request.column,
                         .windows = {request.window, request.stride},
                         .setting = request.setting});
  return {hdf5_source(),
          [windows](const SourceSpec& spec,
                    const std::vector<files::DataFile>& data, StopFlag stop) {
            return open_hdf5(spec, data, windows, stop);
          }};
}

/// Says why a data set that is there is no column.
[[noreturn]] void explain(const SourceSpec& spec,
                          const std::vector<ColumnRequest>& requests,
                          StopFlag stop, const Error& unknown) {
  const files::FileKind kind = kind_of(requests);
  const Schema schema = files::open_set(spec, kind, stop).schema();
  for (const ColumnRequest& request : requests)
    for (const LeftOutColumn& one : schema.left_out)
      if (one.name == request.column ||
          request.column.starts_with(one.name + "."))
        throw Error(ErrorKind::source,
                    {.code = "hdf5.unreadable",
                     .what = "cannot read data set '" + one.name + "' in '" +
                             spec.path + "'",
                     .where = request.setting,
                     .why = one.why,
                     .next = one.next});
  throw unknown;
}

std::unique_ptr<Source> open(const SourceSpec& spec,
                             const std::vector<ColumnRequest>& requests,
                             SourceOptions options) {
  try {
    return files::open_file_source(spec, requests, options, kind_of(requests));
  } catch (const Error& error) {
    const std::string& code = error.parts().code;
    if (code != "source.unknown_column" && code != "source.column_type") throw;
    explain(spec, requests, options.stop, error);
  }
}

Schema schema(const SourceSpec& spec) {
  return files::read_file_schema(spec, kind_of({}));
}

constexpr SourcePlugin kPlugin{.open_source = open,
                               .read_schema = schema,
                               .create_table = files::refuse_writing};

}  // namespace
}  // namespace hdf5
}  // namespace penstock

extern "C" const penstock::SourcePlugin* penstock_source_part() {
  return &penstock::hdf5::kPlugin;
}
