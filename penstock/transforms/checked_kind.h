#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/transforms/field_kind.h"

/// Kinds are also written by users. What one of them gets wrong is an error
/// that names its field, never damaged memory, as far as that can be seen
/// without doing its work again: what it declares, the values and runs that it
/// appends, the rows that it rejects, and where it writes. What it reads is its
/// own affair, and so is what it queues on a device.
namespace penstock {

/// Throws Error(internal), transform.wrong_form, where what a field's kind
/// declares does not fit together.
void check_declared(const Field& field);

/// Throws Error(internal), transform.wrong_runs, unless `rows` runs follow the
/// first `before` ones, one after the other up to the last byte; and
/// Error(request), fields.too_many_bytes, where they end beyond 4 GiB, which
/// `ends` cannot hold.
void check_runs(const Values& values, std::int64_t before, std::int64_t rows,
                const std::string& field);

/// The encoder of a field. Unless its kind is built in, and so trusted with the
/// memory that it writes, rows are encoded into memory with guards around each
/// of them and copied from there: Error(internal), transform.wrong_bytes, where
/// it wrote beside a row or not all of it.
std::unique_ptr<FieldEncoder> checked_encoder(const Field& field,
                                              const BoundField& bound,
                                              const Json& statistics);
/// The same of its finisher; null where the kind has none.
std::unique_ptr<FieldFinisher> checked_finisher(const Field& field, bool train);

}  // namespace penstock
