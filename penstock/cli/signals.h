#pragma once

#include <atomic>

namespace penstock {

/// Set when a signal asked the run to end after the step at hand.
const std::atomic<bool>& stop_requested();
/// The signal that asked for it, the first of several; 0: none did.
int stop_signal();
/// Set when a signal asked for a checkpoint. Who saves sets it back.
std::atomic<bool>& save_requested();

/// Decides what signals do to the program; called once, before threads start.
/// `ends_in_order`: the verb checks stop_requested() and saves its work.
///
/// SIGINT, SIGTERM, SIGHUP and SIGXCPU request the end; a second SIGINT or
/// SIGTERM ends the program at once. The other two may come several times by
/// themselves: a closing terminal sends SIGHUP through the shell too, and
/// SIGXCPU comes every second. SIGUSR1 and SIGUSR2, the warnings of batch
/// schedulers, request a checkpoint. A signal that the caller had ignored, as
/// nohup does with SIGHUP, stays ignored, except for SIGINT and SIGTERM.
/// SIGPIPE and SIGXFSZ are ignored, so that a write fails and the error says
/// why.
void watch_signals(bool ends_in_order);

}  // namespace penstock
