#pragma once

#include <string>

#include "penstock/inspect/job_text.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// The text of a job file, with comments, that trains unchanged: of a table a
/// `tabular` model of one column from the others, of pictures an
/// `image_classifier` of their class, of arrays the one of these that fits
/// their shape, of texts and chats a `causal_lm`. All rows of a table are read
/// once, and what they hold decides, by rules that the comments state; of the
/// others no more than is needed to know their number and shape.
///
/// Throws Error(request) for a target that is not there or that cannot be
/// learned, and for what cannot be decided, with the option that decides it:
/// init.target, init.no_inputs, init.base; what the source throws; and the
/// error of an interrupted read when `stop` is set.
std::string new_job_text(const NewJob& job, StopFlag stop = {});

}  // namespace penstock
