#include "penstock/sources/arrow/arrow_file.h"
#include "penstock/sources/arrow/table_file.h"
#include "penstock/sources/files/file_source.h"

namespace penstock {

// In the descriptor.
SourceKind parquet_source();
SourceKind arrow_source();
SourceKind hf_source();

namespace arrow_files {

const files::FileKind& kind_of(const SourceSpec& spec) {
  static const files::FileKind parquet{parquet_source(), open_parquet,
                                       files::find_files_anywhere};
  static const files::FileKind arrow{arrow_source(), open_ipc,
                                     files::find_files_anywhere};
  static const files::FileKind hf{hf_source(), open_ipc, find_hf_files};
  if (spec.kind == "hf") return hf;
  return spec.kind == "parquet" ? parquet : arrow;
}

}  // namespace arrow_files
}  // namespace penstock

extern "C" const penstock::SourcePlugin* penstock_source_part() {
  static constexpr penstock::SourcePlugin kPart = [] {
    penstock::SourcePlugin part =
        penstock::files::kFilePlugin<penstock::arrow_files::kind_of>;
    part.create_table = penstock::arrow_files::make_table;
    return part;
  }();
  return &kPart;
}
