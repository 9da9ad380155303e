#pragma once

#include <string>

#include "penstock/base/json.h"

namespace penstock {

/// A page for people, made from the document of report.json alone: the verdict
/// with what to change, where the time went, the stages' rates beside the one
/// that the accelerator needs, memory, epochs, the worst steps, settings. It
/// needs nothing but itself: no script, no font, no picture from elsewhere.
/// What the document does not say is `n/a`, or left out.
std::string report_html(const Json& report);

}  // namespace penstock
