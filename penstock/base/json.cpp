#include "penstock/base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <unordered_map>

#include "penstock/base/hash.h"

namespace penstock {
namespace {

/// Whether it stands in JSON unchanged.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
  });
}

void write_text(std::string_view text, std::string& out) {
  if (is_plain(text)) {  // most keys and words: in a tenth of the time
    out.append("\"").append(text).append("\"");
    return;
  }
  // nlohmann escapes; bytes that are not UTF-8 become U+FFFD.
  out += nlohmann::json(text).dump(-1, ' ', false,
                                   nlohmann::json::error_handler_t::replace);
}

void write_double(double value, std::string& out) {
  char text[32];
  auto [end, status] = std::to_chars(text, text + sizeof(text), value);
  out.append(text, end);
  if (std::string_view(text, end).find_first_of(".e") == std::string_view::npos)
    out += ".0";
}

void write(const Json& json, int indent, int depth, std::string& out);

void new_line(int indent, int depth, std::string& out) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indent * depth), ' ');
}

template <class Items, class WriteItem>
void write_items(const Items& items, char open, char close, int indent,
                 int depth, std::string& out, WriteItem write_item) {
  out += open;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += indent < 0 ? ", " : ",";
    first = false;
    new_line(indent, depth + 1, out);
    write_item(item);
  }
  if (!first) new_line(indent, depth, out);
  out += close;
}

void write(const Json& json, int indent, int depth, std::string& out) {
  if (json.is_null()) {
    out += "null";
  } else if (auto* boolean = std::get_if<bool>(&json.value())) {
    out += *boolean ? "true" : "false";
  } else if (auto* integer = std::get_if<std::int64_t>(&json.value())) {
    out += std::to_string(*integer);
  } else if (auto* number = std::get_if<double>(&json.value())) {
    write_double(*number, out);
  } else if (json.is_string()) {
    write_text(json.string(), out);
  } else if (json.is_array()) {
    write_items(json.array(), '[', ']', indent, depth, out,
                [&](const Json& item) { write(item, indent, depth + 1, out); });
  } else {
    write_items(json.object(), '{', '}', indent, depth, out,
                [&](const auto& member) {
                  write_text(member.first, out);
                  out += ": ";
                  write(member.second, indent, depth + 1, out);
                });
  }
}

}  // namespace

Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(Array value) : value_(std::move(value)) {}
Json::Json(Object value) : value_(std::move(value)) { find_places(); }

/// Where the members of an object are, by the hashes of their keys.
class Json::Places {
 public:
  /// Smaller objects are searched faster without it.
  static constexpr std::size_t kFewest = 64;

  /// Adds the members that it does not have yet.
  void add(const Object& members) {
    for (; added_ < members.size(); ++added_)
      by_hash_.emplace(hash_of(members[added_].first), added_);
  }
  /// The number of members if none exists.
  std::size_t find(const Object& members, std::string_view key) const {
    auto [at, end] = by_hash_.equal_range(hash_of(key));
    for (; at != end; ++at)
      if (members[at->second].first == key) return at->second;
    return members.size();
  }

 private:
  /// Of this process: nobody can choose keys that meet.
  static std::uint64_t hash_of(std::string_view key) {
    static const std::uint64_t secret = std::random_device()();
    return hash64(key, secret);
  }

  std::unordered_multimap<std::uint64_t, std::size_t> by_hash_;
  std::size_t added_ = 0;
};

void Json::FreePlaces::operator()(Places* places) const { delete places; }

// libstdc++ 12 holds that no variant of these types is ever without a value,
// and destroys one even where the copy of its value threw. An assignment copies
// first.
Json::Json(const Json& other) : value_(nullptr) {
  value_ = other.value_;
  find_places();
}
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json& other) { return *this = Json(other); }
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;
bool operator==(const Json& left, const Json& right) {
  return left.value_ == right.value_;
}

Json::Json(double value) : value_(nullptr) {
  if (std::isfinite(value)) value_ = value;
}

std::string Json::dump(int indent) const {
  std::string out;
  write(*this, indent, 0, out);
  return out;
}

bool Json::is_number() const {
  return std::holds_alternative<std::int64_t>(value_) ||
         std::holds_alternative<double>(value_);
}

double Json::number() const {
  if (auto* integer = std::get_if<std::int64_t>(&value_))
    return static_cast<double>(*integer);
  return std::get<double>(value_);
}

std::string_view Json::type_name() const {
  static constexpr std::string_view kNames[] = {
      "null",   "a boolean", "an integer", "a number",
      "a text", "a list",    "an object"};
  return kNames[value_.index()];
}

void Json::find_places() {
  const Object* members = std::get_if<Object>(&value_);
  if (members == nullptr || members->size() < Places::kFewest) return;
  if (places_ == nullptr) places_.reset(new Places());
  places_->add(*members);
}

/// The number of members if none exists.
std::size_t Json::place_of(std::string_view key) const {
  const Object& members = object();
  if (places_ != nullptr) return places_->find(members, key);
  const auto found =
      std::ranges::find(members, key, &Object::value_type::first);
  return static_cast<std::size_t>(found - members.begin());
}

const Json* Json::find(std::string_view key) const {
  const std::size_t place = place_of(key);
  return place < object().size() ? &object()[place].second : nullptr;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object{};
  const std::size_t place = place_of(key);
  Object& members = std::get<Object>(value_);
  if (place < members.size()) return members[place].second;
  members.emplace_back(std::string(key), Json());
  find_places();
  return members.back().second;
}

void Json::push_back(Json value) {
  if (is_null()) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(value));
}

}  // namespace penstock
