#include "penstock/sources/files/file_settings.h"

namespace penstock {

SourceKind token_store_source() {
  SourceKind kind = file_kind(
      "token_store", "token stores", "token_store", {".bin", ".ds"},
      SettingsTable<FileSettings>()
          .choice("dtype", &FileSettings::dtype,
                  {{"uint16", "uint16"}, {"uint32", "uint32"}},
                  "Type of the tokens in a file that does not declare it")
          .integer(
              "document_end", &FileSettings::document_end, -1,
              (std::int64_t{1} << 32) - 1,
              "Id of the token that ends a document, in a file that does not "
              "store document boundaries. -1: documents are cut after 2^20 "
              "tokens"));
  kind.beside = {".idx", "+.index", ".json"};
  return kind;
}

}  // namespace penstock
