#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "penstock/session/session.h"

namespace penstock {

/// The weights that a model begins with, and which of them it has taken.
///
/// One thread. Throws Error(request), code model.weights, with the file and the
/// tensor.
class WeightFiles {
 public:
  /// `path`: as MappedWeights has it.
  explicit WeightFiles(const std::string& path) : mapped_(path) {}

  bool has(const std::string& name) const { return mapped_.has(name); }
  /// As it lies in the file, of any floating type, int64 or bool; valid as long
  /// as this. Refuses one that is missing or has another shape.
  at::Tensor take(const std::string& name, at::IntArrayRef shape) const;
  /// A weight [out, in] that was quantised; nullopt where the file has it
  /// unquantised, or not at all. Refuses what take() refuses.
  std::optional<Nf4Parts> take_nf4(const std::string& name,
                                   at::IntArrayRef shape) const;
  std::vector<std::int64_t> shape_of(const std::string& name) const;
  /// Refuses the first tensor that was not taken and does not end with one of
  /// `known`.
  void check_all_taken(const std::vector<std::string>& known) const;

 private:
  const MappedWeights mapped_;
  mutable std::set<std::string> taken_;
};

}  // namespace penstock
