#include "penstock/tokenizer/file_value.h"

#include "penstock/base/error.h"
#include "penstock/base/utf8.h"
#include "penstock/tokenizer/merges.h"

namespace penstock {
namespace {

const Json kNull;

Error failed(std::string code, std::string where, std::string why,
             std::string next) {
  return Error(ErrorKind::request, {.code = std::move(code),
                                    .what = "cannot use this tokenizer",
                                    .where = std::move(where),
                                    .why = std::move(why),
                                    .next = std::move(next)});
}

std::string found(const Json& json) {
  if (json.is_string()) return shown_text(json.string());
  if (json.is_number()) return json.dump();
  return std::string(json.type_name());
}

}  // namespace

FileValue FileValue::at(std::string_view key) const {
  if (!json_->is_object()) wrong("an object");
  const Json* member = json_->find(key);
  return {member == nullptr ? kNull : *member, origin_,
          path_.empty() ? std::string(key) : path_ + "." + std::string(key)};
}

FileValue FileValue::item(std::size_t index) const {
  return {json_->array()[index], origin_,
          path_ + "[" + std::to_string(index) + "]"};
}

std::size_t FileValue::size() const {
  if (!json_->is_array()) wrong("a list");
  return json_->array().size();
}

const std::string& FileValue::text() const {
  if (!json_->is_string()) wrong("a text");
  return json_->string();
}

bool FileValue::flag(bool otherwise) const {
  if (json_->is_null()) return otherwise;
  const bool* value = std::get_if<bool>(&json_->value());
  if (value == nullptr) wrong("true or false");
  return *value;
}

std::int64_t FileValue::whole(std::int64_t least, std::int64_t most) const {
  const auto* value = std::get_if<std::int64_t>(&json_->value());
  if (value == nullptr || *value < least || *value > most)
    wrong("a whole number from " + std::to_string(least) + " to " +
          std::to_string(most));
  return *value;
}

std::uint32_t FileValue::id() const {
  const auto* value = std::get_if<std::int64_t>(&json_->value());
  if (value == nullptr || *value < 0) wrong("the id of a token, 0 or more");
  if (*value >= static_cast<std::int64_t>(Merges::kMostTokens))
    too_large("the id " + std::to_string(*value),
              std::to_string(Merges::kMostTokens - 1));
  return static_cast<std::uint32_t>(*value);
}

const std::string& FileValue::type() const { return at("type").text(); }

void FileValue::wrong(std::string_view expected) const {
  wrong("found " + found(*json_) + ", expected " + std::string(expected),
        "compare this file with the one that the model came with");
}

void FileValue::wrong(std::string why, std::string next) const {
  throw failed("tokenizer.file", where(), std::move(why), std::move(next));
}

void FileValue::unknown(std::string_view asked) const {
  throw failed(
      "tokenizer.part", where(),
      std::string(asked) +
          " is not supported, and approximate token ids would be wrong",
      "tokenise with the tokenizers library, and train on a column of ids");
}

void FileValue::too_large(std::string_view found, std::string_view most) const {
  throw failed("tokenizer.size", where(),
               "found " + std::string(found) + ", but at most " +
                   std::string(most) + " are supported",
               "compare this file with the one that the model came with");
}

std::string FileValue::where() const {
  std::string text(origin_);
  return path_.empty() ? text : text + ", " + path_;
}

}  // namespace penstock
