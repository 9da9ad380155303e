#pragma once

#include <nanobind/nanobind.h>

namespace penstock::python {

/// From now on the engine's messages are kept, from whatever thread they come,
/// until write_messages() hands them to Python. The engine's threads never wait
/// for Python's lock.
void keep_messages();

/// Hands what was kept to `penstock.messages.write(level, text)`. With Python's
/// lock; nearly free when there is nothing to write.
void write_messages();

/// Errors of the engine become exceptions of `penstock.errors`.
void translate_errors();

}  // namespace penstock::python
