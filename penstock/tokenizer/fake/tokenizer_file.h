#pragma once

#include <string>
#include <utility>
#include <vector>

#include "penstock/base/json.h"
#include "penstock/tokenizer/byte_level.h"

namespace penstock {

/// A small tokenizer.json of byte-level BPE: the 256 bytes are the ids 0 to
/// 255, and each merge is the next one. Members are changed before `text`.
struct TokenizerFile {
  explicit TokenizerFile(
      const std::vector<std::pair<std::string, std::string>>& merges = {}) {
    Json::Object vocabulary;
    for (int byte = 0; byte < 256; ++byte)
      vocabulary.emplace_back(
          character_of_byte(static_cast<unsigned char>(byte)), byte);
    Json::Array pairs;
    int next = 256;
    for (const auto& [first, second] : merges) {
      vocabulary.emplace_back(first + second, next++);
      pairs.emplace_back(first + " " + second);
    }
    json["version"] = "1.0";
    json["added_tokens"] = Json::Array();
    json["pre_tokenizer"] =
        Json::parse(R"({"type": "ByteLevel", "add_prefix_space": false})", "");
    json["decoder"] = Json::parse(R"({"type": "ByteLevel"})", "");
    json["model"]["type"] = "BPE";
    json["model"]["vocab"] = std::move(vocabulary);
    json["model"]["merges"] = std::move(pairs);
  }
  void set(const std::string& part, const std::string& value) {
    json[part] = Json::parse(value, part);
  }
  void set_model(const std::string& part, const std::string& value) {
    json["model"][part] = Json::parse(value, part);
  }
  std::string text() const { return json.dump(); }

  Json json;
};

}  // namespace penstock
