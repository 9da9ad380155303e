#include "penstock/sources/arrow/damaged.h"

#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"

namespace penstock::arrow_files {
namespace {

std::string place_in(const files::DataFile& file, const std::string& where) {
  return file.path + (where.empty() ? "" : ", ") + where;
}

}  // namespace

void fail(ArrowSays says, const files::DataFile& file,
          const std::string& where) {
  std::string text = beginning(says.text, 300);
  for (char& c : text)
    if (c == '\n') c = ' ';
  const std::string place = place_in(file, where);
  if (says.no_memory)
    throw Error(ErrorKind::out_of_memory,
                {.code = "files.no_memory",
                 .what = "cannot read the file",
                 .where = place,
                 .why = "Arrow reports: " + text,
                 .next = "write the file in smaller row groups or batches, or "
                         "give the job more memory"});
  if (says.unsupported)
    throw Error(
        ErrorKind::source,
        {.code = "files.unsupported",
         .what = "cannot read the file",
         .where = place,
         .why = "Arrow reports: " + text,
         .next = "the file may be intact: write it again with other types, "
                 "encodings or compression, or choose other columns"});
  refuse_damaged(file, where, "Arrow reports: " + text);
}

void refuse_damaged(const files::DataFile& file, const std::string& where,
                    std::string why) {
  // What another program has changed is not damaged.
  files::check_unchanged(file);
  throw Error(ErrorKind::source,
              {.code = "files.damaged",
               .what = "cannot read the file",
               .where = place_in(file, where),
               .why = std::move(why),
               .next = "get an intact copy of the file: this one is damaged, "
                       "cut off or in another format"});
}

void refuse_format(const files::DataFile& file, std::string why,
                   std::string next) {
  throw Error(ErrorKind::source, {.code = "files.damaged",
                                  .what = "cannot read the file",
                                  .where = file.path,
                                  .why = std::move(why),
                                  .next = std::move(next)});
}

std::string group_name(std::int64_t group, std::int64_t first,
                       std::int64_t end) {
  return "row group " + std::to_string(group) + " (rows " +
         std::to_string(first) + ".." + std::to_string(end) + ")";
}

std::string batch_name(std::int64_t batch) {
  return "record batch " + std::to_string(batch);
}

}  // namespace penstock::arrow_files
