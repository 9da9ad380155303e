#pragma once

#include <atomic>
#include <memory>

#include "penstock/base/base.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// The same source, whose readers end by an error when `stop` is set, so that
/// Ctrl-C is heard in the middle of a long table and between two statements.
/// With no `stop`, the source itself.
std::unique_ptr<Source> stoppable(std::unique_ptr<Source> source,
                                  const std::atomic<bool>* stop);

/// Throws that error when `stop` is set.
void end_if_stopped(const std::atomic<bool>* stop);

/// True for that error, whichever stage it came through.
bool is_stop(const Error& error);

}  // namespace penstock
