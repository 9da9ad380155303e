#include "penstock/sources/text/json_lines.h"

#include <algorithm>

#include "penstock/base/error.h"
#include "penstock/base/json.h"
#include "penstock/base/utf8.h"

namespace penstock::text {
namespace {

/// The byte from which on a line is no JSON; 0: it is, or is so from there on.
std::size_t json_fault_at(std::string_view row) {
  try {
    Json::parse(row, "the line");
  } catch (const Error& error) {
    const std::string& where = error.parts().where;  // "line 1, column 7"
    return std::stoul(where.substr(where.rfind(' ') + 1)) - 1;
  }
  return 0;
}

/// Whether NaN or an infinity stands there, as Python writes them.
bool is_no_number(std::string_view rest) {
  if (rest.starts_with('-')) rest.remove_prefix(1);
  return rest.starts_with('N') || rest.starts_with('I');
}

}  // namespace

std::string why_bad_line(simdjson::error_code error, std::string_view row,
                         const std::string& line) {
  const std::size_t fault = json_fault_at(row);
  const bool encoding = error == simdjson::UTF8_ERROR;
  std::string why = encoding ? "the line is not UTF-8, as JSON must be"
                    : error == simdjson::INCORRECT_TYPE && fault == 0
                        ? "the line is not a JSON object"
                        : std::string("the line is not JSON: ") +
                              simdjson::error_message(error);
  why +=
      " (" + line + ":" + std::to_string(fault + 1) + "): " + shown_text(row);
  if (encoding) return why + "; convert the file: iconv -f latin1 -t utf-8";
  if (row.find('\r') != row.npos)
    why +=
        "; a carriage return does not end a line in this file, since the first "
        "line ends with a line feed: use one kind of line end";
  if (is_no_number(row.substr(std::min(fault, row.size()))))
    why += "; JSON has no NaN and no Infinity: write null";
  return why;
}

}  // namespace penstock::text
