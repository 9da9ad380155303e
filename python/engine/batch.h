#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "python/engine/batch_handle.h"

namespace penstock::python {

namespace nb = nanobind;

/// One tensor of a batch. It keeps the batch's memory; so does everything that
/// is made of it.
class Field {
 public:
  Field(std::shared_ptr<BatchHandle> held, std::string name,
        const TensorView& view)
      : held_(std::move(held)), name_(std::move(name)), view_(view) {}

  const std::string& name() const { return name_; }
  const TensorView& view() const { return view_; }
  const std::shared_ptr<BatchHandle>& held() const { return held_; }

 private:
  std::shared_ptr<BatchHandle> held_;
  std::string name_;
  TensorView view_;
};

/// A batch as Python sees it: names -> fields.
class NamedBatch {
 public:
  explicit NamedBatch(std::shared_ptr<BatchHandle> held)
      : held_(std::move(held)) {}

  const BatchHandle& held() const { return *held_; }
  std::size_t size() const { return held_->batch().tensors().size(); }
  /// By place, and by name: null if none exists.
  Field field(std::size_t place) const;
  const NamedTensor* find(std::string_view name) const;
  Field field(const NamedTensor& tensor) const {
    return {held_, tensor.name, tensor.view};
  }
  std::vector<std::string> names() const;

 private:
  std::shared_ptr<BatchHandle> held_;
};

void bind_field(nb::module_& module);
void bind_batch(nb::module_& module);

}  // namespace penstock::python
