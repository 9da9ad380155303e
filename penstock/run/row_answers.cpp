#include "penstock/run/row_answers.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace penstock {
namespace {

template <class T>
void append_all(std::vector<T>& all, std::vector<T>&& more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()),
             std::make_move_iterator(more.end()));
}

}  // namespace

void RowAnswers::append(RowAnswers&& more) {
  append_all(keys, std::move(more.keys));
  append_all(numbers, std::move(more.numbers));
  append_all(texts, std::move(more.texts));
  bad += more.bad;
  append_all(bad_rows, std::move(more.bad_rows));
}

std::string bytes_of(const RowAnswers& answers) {
  Json json;
  json["keys"] = answers.keys;
  json["texts"] = Json::Array(answers.texts.begin(), answers.texts.end());
  json["bad"] = answers.bad;
  json["bad_rows"] = Json::Array{};
  for (const BadRow& row : answers.bad_rows)
    json["bad_rows"].push_back(json_of(row));
  const std::string text = json.dump();
  const std::uint64_t length = text.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes += text;
  bytes.append(reinterpret_cast<const char*>(answers.numbers.data()),
               answers.numbers.size() * sizeof(double));
  return bytes;
}

RowAnswers row_answers_in(std::string_view bytes) {
  std::uint64_t length = 0;
  PENSTOCK_ASSERT(bytes.size() >= sizeof(length), "answers of a rank");
  std::memcpy(&length, bytes.data(), sizeof(length));
  bytes.remove_prefix(sizeof(length));
  PENSTOCK_ASSERT(
      length <= bytes.size() && (bytes.size() - length) % sizeof(double) == 0,
      "answers of a rank");
  const Json json =
      Json::parse(bytes.substr(0, length), "the answers of another rank");
  bytes.remove_prefix(length);
  RowAnswers answers{.keys = json.find("keys")->array(),
                     .numbers = std::vector<double>(bytes.size() / 8),
                     .bad = json.find("bad")->integer()};
  if (!bytes.empty())
    std::memcpy(answers.numbers.data(), bytes.data(), bytes.size());
  for (const Json& text : json.find("texts")->array())
    answers.texts.push_back(text.string());
  for (const Json& row : json.find("bad_rows")->array())
    answers.bad_rows.push_back(bad_row_of(row));
  return answers;
}

}  // namespace penstock
