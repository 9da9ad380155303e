#include "penstock/sources/tfrecord/example.h"

#include <cstring>

namespace penstock::tfrecord {
namespace {

constexpr const char* kCut = "the protocol buffer is cut off or damaged";

/// The fields of a message, one after the other. The wire format of Protocol
/// Buffers (protobuf.dev, "Encoding"): each field is a varint key (number << 3
/// | type) and a value: a varint, 8 bytes, 4 bytes, or a length and so many
/// bytes. A varint has 7 bits in each byte, the lowest first; the top bit says
/// that another byte follows. Groups (3, 4) do not occur.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  enum Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  /// False at the end, and where the message is damaged: good() tells.
  bool next() {
    if (rest_.empty()) return false;
    std::uint64_t key = 0;
    if (!take_varint(key)) return false;
    number_ = key >> 3;
    wire_ = static_cast<Wire>(key & 7U);
    std::uint64_t size = 0;
    switch (wire_) {
      case varint:
        return take_varint(value_);
      case fixed64:
        return take(8);
      case fixed32:
        return take(4);
      case bytes:
        return take_varint(size) && take(size);
    }
    good_ = false;
    return false;
  }
  bool take_varint(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return true;
    }
    good_ = false;
    return false;
  }

  bool good() const { return good_; }
  bool at_end() const { return rest_.empty(); }
  std::uint64_t number() const { return number_; }
  Wire wire() const { return wire_; }
  std::uint64_t value() const { return value_; }
  std::string_view contents() const { return contents_; }

 private:
  bool take(std::uint64_t size) {
    if (size > rest_.size()) return good_ = false;
    contents_ = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(static_cast<std::size_t>(size));
    return true;
  }

  std::string_view rest_, contents_;
  std::uint64_t number_ = 0, value_ = 0;
  Wire wire_ = varint;
  bool good_ = true;
};

bool add_floats(const Message& field, std::vector<float>& to) {
  const std::string_view from = field.contents();
  if (field.wire() != Message::fixed32 && field.wire() != Message::bytes)
    return false;
  if (from.size() % sizeof(float) != 0) return false;
  const std::size_t before = to.size();
  to.resize(before + from.size() / sizeof(float));
  std::memcpy(to.data() + before, from.data(), from.size());
  return true;
}

bool add_integers(const Message& field, std::vector<std::int64_t>& to) {
  if (field.wire() == Message::varint) {
    to.push_back(static_cast<std::int64_t>(field.value()));
    return true;
  }
  if (field.wire() != Message::bytes) return false;
  Message packed(field.contents());
  for (std::uint64_t value = 0; !packed.at_end();) {
    if (!packed.take_varint(value)) return false;
    to.push_back(static_cast<std::int64_t>(value));
  }
  return true;
}

}  // namespace

// tensorflow/core/example/example.proto and feature.proto: Example{1:
// Features}, Features{1: map<string, Feature>}, where an entry of a map is a
// message {1: key, 2: value}, and Feature{1: BytesList | 2: FloatList | 3:
// Int64List}, each {1: repeated value}. Numbers may be packed (one field of
// bytes) or not. Of a key that comes twice the last one holds, as in all
// parsers.
std::string read_example(std::string_view message, Features& to) {
  to.clear();
  Message example(message);
  while (example.next()) {
    if (example.number() == 2)
      return "the record holds a SequenceExample, expected an Example";
    if (example.number() != 1 || example.wire() != Message::bytes) continue;
    Message features(example.contents());
    while (features.next()) {
      if (features.number() != 1 || features.wire() != Message::bytes) continue;
      std::string_view name, feature;
      Message entry(features.contents());
      while (entry.next()) {
        if (entry.wire() != Message::bytes) continue;
        if (entry.number() == 1) name = entry.contents();
        if (entry.number() == 2) feature = entry.contents();
      }
      if (!entry.good()) return kCut;
      to[name] = feature;
    }
    if (!features.good()) return kCut;
  }
  return example.good() ? std::string() : kCut;
}

std::string read_feature(std::string_view message, Feature& to) {
  to.kind = FeatureKind::empty;
  to.bytes.clear();
  to.floats.clear();
  to.integers.clear();
  Message feature(message);
  while (feature.next()) {
    if (feature.number() < 1 || feature.number() > 3 ||
        feature.wire() != Message::bytes)
      continue;
    to.kind = static_cast<FeatureKind>(feature.number());
    Message list(feature.contents());
    while (list.next()) {
      if (list.number() != 1) continue;
      bool good = true;
      if (to.kind == FeatureKind::floats)
        good = add_floats(list, to.floats);
      else if (to.kind == FeatureKind::integers)
        good = add_integers(list, to.integers);
      else if ((good = list.wire() == Message::bytes))
        to.bytes.push_back(list.contents());
      if (!good) return kCut;
    }
    if (!list.good()) return kCut;
  }
  return feature.good() ? std::string() : kCut;
}

}  // namespace penstock::tfrecord
