#pragma once

#include <string>
#include <utility>

namespace penstock {

/// A text that cannot be printed by accident: no stream operator, no
/// conversion, and JSON shows "***". Ask for it by name.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  const std::string& reveal() const { return text_; }
  bool empty() const { return text_.empty(); }

 private:
  std::string text_;
};

/// A message as it may be shown: "***" for what looks like a password in it.
/// For a connection string by itself there is connection_string.h.
std::string without_password(const std::string& uri);

}  // namespace penstock
