#include "penstock/sources/files/file_settings.h"

namespace penstock {

SourceKind token_store_source() {
  SourceKind kind = file_kind(
      "token_store", "token stores", "token_store", {".bin", ".ds"},
      SettingsTable<FileSettings>()
          .choice("dtype", &FileSettings::dtype,
                  {{"uint16", "uint16"}, {"uint32", "uint32"}},
                  "of tokens in a file that does not say it")
          .integer("document_end", &FileSettings::document_end, -1,
                   (std::int64_t{1} << 32) - 1,
                   "the token that ends a document, in a file that does not "
                   "say where they end; -1: none"));
  kind.beside = {".idx", "+.index", ".json"};
  return kind;
}

}  // namespace penstock
