#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "penstock/session/session.h"

namespace penstock {

/// The folder of a model that is made of another one, shard by shard.
class ModelWriter {
 public:
  /// `out` is a new or empty folder; else throws Error(request), code
  /// model.out_exists.
  ModelWriter(const MappedWeights& from, const std::string& out);

  /// What is written in place of a tensor of `from`; it is valid until the
  /// shard is written. An empty list leaves the tensor out.
  using Replace = std::function<std::vector<NamedTensor>(
      const std::string& name, const TensorView& view)>;
  /// Writes a shard for each of `from`, and their index where there is one.
  /// `shard_written` is called after each.
  void write_weights(const Replace& replace,
                     const std::function<void()>& shard_written);
  /// The configuration, and whatever else lies beside the weights: tokenizers
  /// and templates.
  void write_rest(const Json& config);

 private:
  const MappedWeights& from_;
  const std::filesystem::path model_;
  OutputFolder out_;
};

/// A copy of an object without some of its members.
Json without(const Json& object, const std::vector<std::string>& keys);

}  // namespace penstock
