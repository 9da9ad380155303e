#include "penstock/base/error.h"
#include "penstock/sources/plugin.h"

// A plugin for plugin_test.cpp: everything it does is throw. Built once as it
// should be, once with the note of another build, and once without one.
namespace {

[[noreturn]] void fail(const penstock::SourceSpec& spec) {
  throw penstock::Error(penstock::ErrorKind::source,
                        {.code = "test.thrown",
                         .what = "a test part was used",
                         .where = spec.table});
}

}  // namespace

extern "C" const penstock::SourcePlugin* penstock_source_part() {
  using namespace penstock;
  static constexpr SourcePlugin kPart{
      .open_source =
          [](const SourceSpec& spec, const std::vector<ColumnRequest>&,
             SourceOptions) -> std::unique_ptr<Source> { fail(spec); },
      .read_schema = [](const SourceSpec& spec) -> Schema { fail(spec); },
      .create_table = [](const SourceSpec& spec, const std::vector<NewColumn>&,
                         bool) -> std::unique_ptr<TableWriter> { fail(spec); }};
  return &kPart;
}
