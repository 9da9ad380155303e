#pragma once

#include <memory>
#include <string>
#include <vector>

#include "penstock/base/setting_schema.h"
#include "penstock/base/spec.h"
#include "penstock/transforms/batch_operation.h"

namespace penstock {

/// What the program knows of a kind of batch operation: its descriptor, in the
/// kind's own folder.
struct OperationDescriptor {
  std::string key;  ///< the key of an entry that names the kind
  /// Of an entry, `key` included.
  std::vector<SettingSchema> (*settings)();
  /// Checks an entry; the caller then calls finish().
  std::shared_ptr<const BatchOperation> (*make)(Spec& entry);
};

/// All kinds, in the order in which hints name them.
const std::vector<OperationDescriptor>& operation_descriptors();

/// One entry of a loader's `operations`.
struct Operation {
  std::shared_ptr<const BatchOperation> kind;
  bool every_side = false;  ///< else for train alone
};

/// Checks such a list. Throws Error(request) with the JSON path.
std::vector<Operation> parse_operations(const Json& list,
                                        const std::string& path);
/// The JSON Schema of the list.
Json operations_schema();
/// The entries with all defaults, in their order.
Json recipes_of(const std::vector<Operation>& operations);

}  // namespace penstock
