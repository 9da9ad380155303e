#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/base/json.h"

namespace penstock {

/// A value of a tokenizer.json and where it stands, for clear errors.
class FileValue {
 public:
  FileValue(const Json& json, std::string_view origin, std::string path)
      : json_(&json), origin_(origin), path_(std::move(path)) {}

  const Json& json() const { return *json_; }
  bool is_null() const { return json_->is_null(); }

  /// A member; null where the file has none.
  FileValue at(std::string_view key) const;
  FileValue item(std::size_t index) const;
  std::size_t size() const;  ///< of a list

  const std::string& text() const;
  bool flag(bool otherwise) const;  ///< `otherwise` where it is null
  std::int64_t whole(std::int64_t least, std::int64_t most) const;
  std::uint32_t id() const;
  /// The member "type".
  const std::string& type() const;

  /// tokenizer.file: it is not what it must be.
  [[noreturn]] void wrong(std::string_view expected) const;
  [[noreturn]] void wrong(std::string why, std::string next) const;
  /// tokenizer.part: it asks for what we do not do.
  [[noreturn]] void unknown(std::string_view asked) const;
  /// tokenizer.size
  [[noreturn]] void too_large(std::string_view found,
                              std::string_view most) const;

 private:
  std::string where() const;

  const Json* json_;
  std::string_view origin_;
  std::string path_;
};

}  // namespace penstock
