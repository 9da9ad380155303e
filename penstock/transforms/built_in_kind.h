#pragma once

#include "penstock/transforms/field_kind.h"

namespace penstock {

/// A kind of this repository. Its tests hold it to all that FieldKind says
/// (tests/conformance/field_kind_suite.h), so that what it writes is not
/// checked while it runs, as that of other kinds is (checked_kind.h).
class BuiltInKind : public FieldKind {};

}  // namespace penstock
