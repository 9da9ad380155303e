#pragma once

#include <atomic>

#include "penstock/base/error.h"

namespace penstock {

/// Ends what reads, from outside: set by another thread or a signal handler. It
/// outlives all that got to know it. Null: nothing ends it.
using StopFlag = const std::atomic<bool>*;

/// Throws the error of a reading that was ended when `stop` is set.
void end_if_stopped(StopFlag stop);

/// True for that error, whichever stage it came through.
bool is_stop(const Error& error);

}  // namespace penstock
