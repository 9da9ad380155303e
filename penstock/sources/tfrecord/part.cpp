#include "penstock/sources/files/file_source.h"
#include "penstock/sources/tfrecord/record_file.h"

namespace penstock {

// In the descriptor.
SourceKind tfrecord_source();

namespace tfrecord {

const files::FileKind& kind_of(const SourceSpec&) {
  static const files::FileKind kind{tfrecord_source(), open_records};
  return kind;
}

}  // namespace tfrecord
}  // namespace penstock

extern "C" const penstock::SourcePlugin* penstock_source_part() {
  return &penstock::files::kFilePlugin<penstock::tfrecord::kind_of>;
}
