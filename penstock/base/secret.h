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

/// A connection string as it may be shown: its password replaced by "***",
/// in the URI form and in the key=value form of libpq.
std::string without_password(const std::string& uri);

}  // namespace penstock
