#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/base.h"
#include "penstock/base/tensor.h"

namespace penstock {

/// The weights of a model where they lie in its files, by the names of the
/// program that wrote them: a safetensors file, a checkpoint of ours, the
/// shards that an index names, or the folder that holds either as
/// `model.safetensors` or `model.safetensors.index.json`. The files are mapped,
/// not read.
///
/// Thread-safe. Throws Error(request), code model.weights, with the file and
/// the tensor.
class MappedWeights {
 public:
  /// A tensor and its file. It may lie at any address, and must not be written
  /// to.
  struct Tensor {
    std::string file;
    TensorView view;
  };

  explicit MappedWeights(const std::string& path);

  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// Refuses a name that no file has.
  const Tensor& at(const std::string& name) const;
  const std::map<std::string, Tensor>& all() const { return tensors_; }
  const std::string& path() const { return path_; }
  /// The files, in the order of their names.
  const std::vector<std::string>& files() const { return names_; }

 private:
  void open_folder();
  void open_index(const std::string& file);
  void open_file(const std::string& file);

  std::string path_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<FileMapping>> files_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace penstock
