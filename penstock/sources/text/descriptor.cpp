#include "penstock/sources/files/file_settings.h"

namespace penstock {
namespace {

SourceKind text_kind(const std::string& name, const std::string& shown,
                     std::vector<std::string> extensions,
                     const SettingsTable<FileSettings>& own) {
  for (std::size_t at = 0, plain = extensions.size(); at < plain; ++at)
    for (const char* packed : {".gz", ".zst"})
      extensions.push_back(extensions[at] + packed);
  SourceKind kind = file_kind(name, shown, "text", std::move(extensions), own);
  kind.guesses_types = true;
  kind.to_run = "zlib1g libzstd1 libsimdjson14";
  kind.to_build = "zlib1g-dev libzstd-dev libsimdjson-dev";
  return kind;
}

void check_delimiter(Spec& section, FileSettings& of) {
  auto one = [&](const char* key, const std::string& text, const char* word) {
    if (text.size() == 1 || text.empty() || text == word) return;
    section.refuse(
        key, "found '" + text + "', expected one character or \"" + word + "\"",
        "write one ASCII character");
  };
  one("delimiter", of.delimiter, "tab");
  one("quote", of.quote, "none");
  if (!of.delimiter.empty() && of.delimiter == of.quote)
    section.refuse(
        "delimiter",
        "found '" + of.delimiter + "', which is also the quotation mark",
        "choose two different characters");
  if (of.decimal == of.thousands)
    section.refuse("thousands", "it is the mark before a fraction, too",
                   "set \"decimal\" to the other one");
}

}  // namespace

SourceKind csv_source() {
  SettingsTable<FileSettings> own =
      SettingsTable<FileSettings>()
          .text("delimiter", &FileSettings::delimiter,
                "Character between cells, or \"tab\". Default: found from the "
                "first rows, out of comma, semicolon, tab and |")
          .text("quote", &FileSettings::quote,
                "Character around cells that contain the delimiter or line "
                "breaks. \"none\": cells are never quoted")
          .choice("decimal", &FileSettings::decimal, {{".", "."}, {",", ","}},
                  "Decimal mark of numbers")
          .choice("thousands", &FileSettings::thousands,
                  {{".", "."}, {",", ","}, {"'", "'"}, {" ", " "}},
                  "Mark between groups of three digits, as in 1,234.5. "
                  "Default: numbers have no such mark")
          .text("encoding", &FileSettings::encoding,
                "Character encoding of the files, as iconv names it")
          .not_empty()
          .boolean("header", &FileSettings::header,
                   "Whether the first line names the columns. Without a header "
                   "they are named c1, c2, ...")
          .texts("na", &FileSettings::na,
                 "Unquoted texts that mean a missing value")
          .check(check_delimiter);
  return text_kind("csv", "CSV", {".csv", ".tsv"}, add_union(own));
}

SourceKind jsonl_source() {
  return text_kind("jsonl", "JSON lines", {".jsonl", ".ndjson"},
                   SettingsTable<FileSettings>());
}

SourceKind text_source() {
  return text_kind(
      "text", "text", {".txt", ".md"},
      SettingsTable<FileSettings>()
          .choice("by", &FileSettings::by_line,
                  {{"file", false}, {"line", true}},
                  "What one document is. file: a whole file; line: a line that "
                  "is not empty")
          .text("encoding", &FileSettings::encoding,
                "Character encoding of the files, as iconv names it")
          .not_empty());
}

}  // namespace penstock
