#include "python/engine/signals_ask.h"

#include <array>

namespace penstock::python {
namespace {

// Written by the handlers, which may use only lock-free atomics.
std::atomic<bool> stop_{false};
std::atomic<bool> save_{false};
std::atomic<int> first_{0};
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<int>::is_always_lock_free);
// What was there before; written while no handler of ours is.
std::array<struct sigaction, 65> before{};

extern "C" void asks_for_the_end(int number) {
  const bool insists = number == SIGINT || number == SIGTERM;
  if (stop_.exchange(true) && insists) {
    ::sigaction(number, &before[static_cast<std::size_t>(number)], nullptr);
    ::raise(number);  // comes when this handler has returned
    return;
  }
  int none = 0;
  first_.compare_exchange_strong(none, number);
}

extern "C" void asks_to_save(int) { save_ = true; }

}  // namespace

SignalsAsk::SignalsAsk(const std::vector<int>& ending,
                       const std::vector<int>& saving) {
  stop_ = false, save_ = false, first_ = 0;
  for (int number : ending) handle(number, asks_for_the_end);
  for (int number : saving) handle(number, asks_to_save);
}

SignalsAsk::~SignalsAsk() {
  for (int number : numbers_)
    ::sigaction(number, &before[static_cast<std::size_t>(number)], nullptr);
}

// One that is ignored, as nohup does with SIGHUP, stays ignored.
void SignalsAsk::handle(int number, void (*handler)(int)) {
  struct sigaction& was = before.at(static_cast<std::size_t>(number));
  ::sigaction(number, nullptr, &was);
  const bool insists = number == SIGINT || number == SIGTERM;
  if (was.sa_handler == SIG_IGN && !insists) return;
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, nullptr);
  numbers_.push_back(number);
}

const std::atomic<bool>& SignalsAsk::stop() { return stop_; }
std::atomic<bool>& SignalsAsk::save() { return save_; }
int SignalsAsk::first() { return first_; }

}  // namespace penstock::python
