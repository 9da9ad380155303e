#include "penstock/cli/signals.h"

#include <signal.h>
#include <unistd.h>

namespace penstock {
namespace {

// Written by the signal handlers, which may use only lock-free atomics.
std::atomic<bool> stop{false};
std::atomic<bool> save{false};
std::atomic<bool> insisted{false};
std::atomic<int> first_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<int>::is_always_lock_free);
// Set before the handlers are there.
bool saves_before_end = false;

// Runs on any thread, between any two instructions: only what signal-safety(7)
// allows, which is atomics without locks and _exit().
extern "C" void on_stop(int number) {
  // A user who sends it twice wants the program to end now. A command that has
  // nothing to save ends at once.
  bool sent_on_purpose = number == SIGINT || number == SIGTERM;
  if (!saves_before_end || (sent_on_purpose && insisted.exchange(true)))
    ::_exit(128 + number);
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
  stop = true;
}

extern "C" void on_save(int) { save = true; }

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  // A run that continues is not interrupted. One that ends is: it may hang in a
  // write to a log that nobody reads.
  action.sa_flags = handler == on_save ? SA_RESTART : 0;
  ::sigaction(number, &action, nullptr);
}

void handle_unless_ignored(int number, void (*handler)(int)) {
  struct sigaction before {};
  ::sigaction(number, nullptr, &before);
  if (before.sa_handler != SIG_IGN) handle(number, handler);
}

}  // namespace

const std::atomic<bool>& stop_requested() { return stop; }
int stop_signal() { return first_signal; }
std::atomic<bool>& save_requested() { return save; }

// SIGPIPE is ignored, so that a closed pipe is an error of write() and a run
// can still save; SIGXFSZ for the same reason. Signals that were ignored when
// the program began (nohup) stay ignored.
void watch_signals(bool ends_in_order) {
  saves_before_end = ends_in_order;
  for (int number : {SIGINT, SIGTERM}) handle(number, on_stop);
  for (int number : {SIGPIPE, SIGXFSZ}) handle(number, SIG_IGN);
  if (!ends_in_order) return;
  for (int number : {SIGHUP, SIGXCPU}) handle_unless_ignored(number, on_stop);
  for (int number : {SIGUSR1, SIGUSR2}) handle_unless_ignored(number, on_save);
}

}  // namespace penstock
