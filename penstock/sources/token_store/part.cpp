#include "penstock/sources/files/file_source.h"
#include "penstock/sources/token_store/token_file.h"

namespace penstock {

// In the descriptor.
SourceKind token_store_source();

namespace token_store {

const files::FileKind& kind_of(const SourceSpec&) {
  static const files::FileKind kind{token_store_source(), open_stores,
                                    find_stores};
  return kind;
}

}  // namespace token_store
}  // namespace penstock

extern "C" const penstock::SourcePlugin* penstock_source_part() {
  return &penstock::files::kFilePlugin<penstock::token_store::kind_of>;
}
