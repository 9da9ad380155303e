#include "penstock/sources/files/file_source.h"
#include "penstock/sources/text/text_file.h"

namespace penstock {

// In the descriptor.
SourceKind csv_source();
SourceKind jsonl_source();
SourceKind text_source();

namespace text {

const files::FileKind& kind_of(const SourceSpec& spec) {
  static const files::FileKind csv{csv_source(), open_csv,
                                   files::find_files_anywhere};
  static const files::FileKind jsonl{jsonl_source(), open_jsonl,
                                     files::find_files_anywhere};
  static const files::FileKind documents{text_source(), open_documents,
                                         files::find_files_anywhere};
  return spec.kind == "csv" ? csv : spec.kind == "text" ? documents : jsonl;
}

}  // namespace text
}  // namespace penstock

extern "C" const penstock::SourcePlugin* penstock_source_part() {
  return &penstock::files::kFilePlugin<penstock::text::kind_of>;
}
