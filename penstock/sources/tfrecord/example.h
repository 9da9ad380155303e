#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/block.h"

namespace penstock::tfrecord {

/// What a feature of a tf.train.Example holds.
enum class FeatureKind : std::uint8_t { empty, bytes, floats, integers };

/// The features of an Example, by name: the bytes of their messages.
using Features = std::map<std::string_view, std::string_view>;

/// Reads the wire format of protocol buffers: Example { Features features = 1
/// }, Features { map<string, Feature> feature = 1 }. What is wrong; empty:
/// nothing.
std::string read_example(std::string_view message, Features& to);

/// Feature { BytesList = 1, FloatList = 2, Int64List = 3 }, each with repeated
/// `value` = 1, packed or not.
struct Feature {
  FeatureKind kind = FeatureKind::empty;
  std::vector<std::string_view> bytes;
  std::vector<float> floats;
  std::vector<std::int64_t> integers;

  std::size_t count() const {
    return bytes.size() + floats.size() + integers.size();
  }
};
std::string read_feature(std::string_view message, Feature& to);

}  // namespace penstock::tfrecord
