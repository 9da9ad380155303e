#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "penstock/base/base.h"

namespace penstock {

/// The weights that a model begins with, by the names of the program that wrote
/// them: a safetensors file, a checkpoint of ours, the shards that an index
/// names, or the folder that holds either as `model.safetensors` and
/// `model.safetensors.index.json`. The files are mapped, not read.
///
/// One thread. Throws Error(request), code model.weights, with the file and the
/// tensor.
class WeightFiles {
 public:
  explicit WeightFiles(const std::string& path);
  ~WeightFiles();

  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// As it lies in the file, of any floating type, int64 or bool; valid as long
  /// as this. Refuses one that is missing or has another shape.
  at::Tensor take(const std::string& name, at::IntArrayRef shape) const;
  std::vector<std::int64_t> shape_of(const std::string& name) const;
  /// Refuses the first tensor that was not taken and does not end with one of
  /// `known`.
  void check_all_taken(const std::vector<std::string>& known) const;

 private:
  struct Place {
    std::string file;
    TensorView view;
  };
  void open_folder();
  void open_index(const std::string& file);
  void open_file(const std::string& file);

  std::string path_;
  std::vector<std::unique_ptr<FileMapping>> files_;
  std::map<std::string, Place> tensors_;
  mutable std::set<std::string> taken_;
};

}  // namespace penstock
