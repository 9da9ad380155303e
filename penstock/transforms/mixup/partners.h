#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "penstock/transforms/batch_operation.h"

namespace penstock {

/// The tensors of an operation that mixes each row of a batch with another one,
/// its partner.
struct MixedTensors {
  std::vector<std::size_t> uses;  ///< those that are mixed, then the labels
  std::vector<Output> adds;  ///< the labels of partners, and how much is mixed
  std::size_t mixed = 0;

  /// `names` are mixed, as long as `check` lets each; `labels` stay
  /// unchanged, and the partner's are added as NAME_mixed, with float32
  /// `share`: how much of a row is its own. Throws Error(request).
  template <class Check>
  MixedTensors(const std::vector<Output>& outputs,
               const std::vector<std::string>& names,
               const std::vector<std::string>& labels, const char* kind,
               const std::string& path, Check check) {
    for (const std::string& name : names) {
      uses.push_back(find_output(outputs, name, path + "." + kind));
      check(outputs[uses.back()]);
    }
    mixed = uses.size();
    add_labels(outputs, labels, kind, path);
  }

 private:
  void add_labels(const std::vector<Output>& outputs,
                  const std::vector<std::string>& labels, const char* kind,
                  const std::string& path);
};

/// Puts the rows into a drawn order; the partner of each is the next one, of
/// the last the first. So no row is its own partner, unless it is alone.
class PartnerOperation : public BoundOperation {
 public:
  void apply(const OperationBatch& batch,
             OperationScratch& scratch) const final;

 protected:
  PartnerOperation(const std::vector<Output>& outputs, MixedTensors tensors);

  /// How much of each row is its own, as drawn for the batch.
  virtual float share_of(const BatchKey& key) const = 0;
  /// Mixes one of the tensors, of two rows at least; `key` is that of the
  /// batch.
  virtual void mix(const Output& output, std::byte* rows,
                   std::span<const std::int64_t> order, const BatchKey& key,
                   std::vector<std::byte>& aside) const = 0;

  /// Calls `each` with a row and its partner, whose bytes are those from before
  /// the call.
  template <class Each>
  static void for_partners(const Output& output, std::byte* rows,
                           std::span<const std::int64_t> order,
                           std::vector<std::byte>& aside, Each each) {
    const std::size_t bytes = output.bytes();
    auto at = [&](std::int64_t row) {
      return rows + static_cast<std::size_t>(row) * bytes;
    };
    // Each row is read by the one before it in the order, so that one row aside
    // is enough.
    aside.assign(at(order.front()), at(order.front()) + bytes);
    for (std::size_t i = 0; i < order.size(); ++i)
      each(at(order[i]),
           i + 1 < order.size() ? at(order[i + 1]) : aside.data());
  }

 private:
  const std::size_t mixed_;
  std::vector<Output> used_;
};

}  // namespace penstock
