#include "penstock/transforms/json_set/json_reference.h"

#include <simdjson.h>

#include <algorithm>

#include "penstock/base/json_text.h"
#include "penstock/base/real_number.h"
#include "penstock/transforms/json_set/json_grammar.h"

namespace penstock {
namespace {

namespace od = simdjson::ondemand;

// simdjson looks at the processor when it is first used, and ends the program
// where there is no memory then.
[[maybe_unused]] const bool processor_is_known =
    !simdjson::get_active_implementation()->name().empty();

std::string name_of(od::json_type type) {
  switch (type) {
    case od::json_type::array:
      return "a list";
    case od::json_type::object:
      return "an object";
    case od::json_type::number:
      return "a number";
    case od::json_type::string:
      return "a text";
    case od::json_type::boolean:
      return "a boolean";
    case od::json_type::null:
      break;
  }
  return "null";
}

// A raw token may be followed by white space.
std::string_view trimmed(std::string_view token) {
  return token.substr(0, token.find_last_not_of(" \n\r\t") + 1);
}

// At most 40 bytes of a token, cut between characters.
std::string shown(std::string_view token) {
  token = trimmed(token);
  if (token.size() <= 40) return std::string(token);
  std::size_t cut = 40;
  while ((static_cast<unsigned char>(token[cut]) & 0xc0) == 0x80) --cut;
  return std::string(token.substr(0, cut)) + "...";
}

// The nearest double; false when it is beyond the largest one. simdjson's own
// get_double is wrong for some numbers with more than 19 digits (its issue
// 2093, in releases before 3.6.3), so the standard library reads them.
bool nearest_double(std::string_view token, double& number) {
  const auto [end, error] =
      real_from_chars(token.data(), token.data() + token.size(), number);
  if (error == std::errc()) return true;
  number = 0;
  return false;
}

}  // namespace

struct ReferenceJson::State {
  explicit State(const KeySlots& from) : slots(from) {}

  KeySlots slots;
  od::parser parser;
  std::vector<char> padded;  // the text and what simdjson reads behind it
  // By slot: what is wrong with the value that counts, the last one.
  std::vector<std::optional<JsonFault>> faults;

  // For an error that the grammar does not find.
  static JsonFault surprise(simdjson::error_code error) {
    return {-1,
            std::string("cannot be parsed: ") + simdjson::error_message(error)};
  }

  std::optional<JsonFault> list(std::string_view text, Elements& out) {
    padded.resize(text.size() + simdjson::SIMDJSON_PADDING);
    std::copy(text.begin(), text.end(), padded.begin());
    od::document document;
    auto error = begin_json(parser, {padded.data(), text.size()}, padded.size(),
                            document);
    if (error) return surprise(error);
    od::json_type type;
    if ((error = document.type().get(type))) return surprise(error);
    if (type != od::json_type::array)
      return JsonFault{
          static_cast<std::int64_t>(text.find_first_not_of(" \n\r\t")),
          "holds " + name_of(type) + ", expected a list of objects"};
    od::array array;
    if ((error = document.get_array().get(array))) return surprise(error);
    for (auto item : array) {
      od::value value;
      if ((error = item.get(value))) return surprise(error);
      if (auto fault = element(value, out)) return fault;
    }
    return std::nullopt;
  }

  std::int64_t byte_of(od::value& value) {
    return value.raw_json_token().data() - padded.data();
  }

  std::optional<JsonFault> element(od::value value, Elements& out) {
    std::string path = "[" + std::to_string(out.count) + "]";
    std::int64_t byte = byte_of(value);
    od::json_type type;
    if (auto error = value.type().get(type)) return surprise(error);
    if (type != od::json_type::object)
      return JsonFault{byte, "element " + path + " is " + name_of(type) +
                                 ", expected an object"};
    od::object object;
    if (auto error = value.get_object().get(object)) return surprise(error);
    std::size_t first = out.add();
    faults.assign(slots.names.size(), std::nullopt);
    for (auto field : object) {
      std::string_view key;
      // A key that cannot be unescaped (half a surrogate pair) is no key of
      // ours.
      bool known = !field.unescaped_key().get(key);
      std::size_t slot = known ? slots.find(key) : KeySlots::kNone;
      od::value held;
      if (auto error = field.value().get(held)) return surprise(error);
      if (slot == KeySlots::kNone) continue;
      if (auto error = take(held, slot, path, out.values[first + slot],
                            out.held[first + slot]))
        return surprise(error);
    }
    return first_fault();
  }

  std::optional<JsonFault> first_fault() {
    std::optional<JsonFault> first;
    for (auto& fault : faults)
      if (fault && (!first || fault->byte < first->byte)) first = fault;
    return first;
  }

  simdjson::error_code take(od::value& value, std::size_t slot,
                            const std::string& path, double& number,
                            Held& held) {
    number = Elements::kMissing;
    held = Held::missing;
    faults[slot].reset();
    std::string_view token = value.raw_json_token();
    auto fault = [&](const std::string& why) {
      faults[slot] = JsonFault{token.data() - padded.data(),
                               path + "." + slots.names[slot] + " " + why};
    };
    od::json_type type;
    if (auto error = value.type().get(type)) return error;
    if (type == od::json_type::null) return simdjson::SUCCESS;
    if (slot >= slots.numeric) {
      held = Held::other;
    } else if (type == od::json_type::boolean) {
      bool is = false;
      if (auto error = value.get_bool().get(is)) return error;
      held = Held::boolean;
      number = is ? 1 : 0;
    } else if (type == od::json_type::number) {
      held = Held::number;
      if (!nearest_double(trimmed(token), number))
        fault("holds " + shown(token) + ", which does not fit float64");
      number += 0.0;  // -0.0 becomes 0.0
    } else {
      std::string found =
          type == od::json_type::string ? ": " + shown(token) : "";
      fault("holds " + name_of(type) + found + ", expected a number");
    }
    return simdjson::SUCCESS;
  }
};

ReferenceJson::ReferenceJson(const KeySlots& slots)
    : state_(new State(slots)) {}
ReferenceJson::~ReferenceJson() = default;
ReferenceJson::ReferenceJson(ReferenceJson&&) noexcept = default;

std::optional<JsonFault> ReferenceJson::parse(std::string_view text,
                                              Elements& out) {
  out.clear();
  if (auto fault = fault_of_json(text)) return fault;
  return state_->list(text, out);
}

}  // namespace penstock
