#pragma once

#include "python/engine/batch.h"

namespace penstock::python {

/// A field as an array of each library, on the field's own memory. Each raises
/// ImportError where the library is not installed; none is imported before it
/// is asked for.
nb::object to_numpy(const Field& field);
nb::object to_torch(const Field& field);
nb::object to_jax(const Field& field);
/// A torch tensor on `device`; without a copy where it is there already.
nb::object to_device(const Field& field, nb::handle device);

/// A numpy array of its own in host memory, wherever the field is.
nb::object to_host(const Field& field);

/// Waits for a field's data where it is read by the host.
void wait_on_host(const BatchHandle& held);

}  // namespace penstock::python
