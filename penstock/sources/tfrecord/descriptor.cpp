#include "penstock/sources/files/file_settings.h"

namespace penstock {

SourceKind tfrecord_source() {
  SettingsTable<FileSettings> own;
  return file_kind("tfrecord", "TFRecord", "tfrecord",
                   {".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrecords.gz"},
                   add_union(own));
}

}  // namespace penstock
