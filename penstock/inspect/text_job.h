#pragma once

#include <string>

#include "penstock/inspect/job_text.h"

namespace penstock {

/// Whether the source has a column of texts or chats by one of the usual names.
bool holds_texts(const SourceSpec& spec);

/// The job that trains a language model of texts or chats; see new_job_text().
/// The first ones are read, to know how many there are and how long.
std::string text_job_text(const NewJob& job, StopFlag stop);

}  // namespace penstock
