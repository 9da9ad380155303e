#include "penstock/base/lost_pages.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "penstock/base/once.h"
#include "penstock/base/sync.h"

// Ranges are kept in a list that only grows: a guard that ends leaves its entry
// for the next one. The handler walks the list without a lock, which it could
// not take. An entry's `begin` and `end` are 0 while nothing is guarded, and
// `end` is set last, so that a half-written entry matches no address.
//
// The handler calls mmap(), which POSIX does not list as safe in handlers; on
// Linux it is a plain system call that takes no lock of the C library.

namespace penstock {

struct LostPages::Range {
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::atomic<std::int64_t> lost{0};
  std::atomic<bool> taken{false};
  Range* next = nullptr;  // never changed once the entry is in the list
};

namespace {

std::atomic<void*> first_range{nullptr};
std::uintptr_t page_bytes = 4096;
struct sigaction before {};  // what handled SIGBUS before us

void hand_on(int signal, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
    return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return before.sa_handler(signal);
  // The access is made again when this returns, and ends the process.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGBUS, &standard, nullptr);
}

}  // namespace

// A page of a mapping whose file was cut off, or whose disk failed, is replaced
// by zeros, and the access that failed is repeated when this returns. Nothing
// here may take a lock, allocate or log.
void handle_bus_error(int signal, void* info, void* context) {
  auto* const about = static_cast<siginfo_t*>(info);
  const auto address = reinterpret_cast<std::uintptr_t>(about->si_addr);
  auto* range = static_cast<LostPages::Range*>(first_range.load());
  for (; range != nullptr; range = range->next)
    if (address >= range->begin && address < range->end) break;
  void* const page = reinterpret_cast<void*>(address & ~(page_bytes - 1));
  if (range == nullptr ||
      ::mmap(page, page_bytes, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return hand_on(signal, about, context);
  ++range->lost;
}

namespace {

void on_bus_error(int signal, siginfo_t* info, void* context) {
  handle_bus_error(signal, info, context);
}

/// Python's faulthandler and others may have taken the signal since.
void install_handler() {
  struct sigaction now {};
  ::sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_bus_error)
    return;
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  before = now;
  ::sigaction(SIGBUS, &ours, nullptr);
}

}  // namespace

LostPages::LostPages(const void* begin, std::size_t bytes) {
  static Mutex mutex;
  if (bytes == 0) return;
  Lock lock(mutex);
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  install_handler();
  for (range_ = static_cast<Range*>(first_range.load()); range_ != nullptr;
       range_ = range_->next)
    if (!range_->taken) break;
  if (range_ == nullptr) {
    range_ = new Range;  // stays until the process ends
    range_->next = static_cast<Range*>(first_range.load());
    first_range = range_;
  }
  range_->taken = true;
  range_->lost = 0;
  range_->begin = reinterpret_cast<std::uintptr_t>(begin);
  range_->end = reinterpret_cast<std::uintptr_t>(begin) + bytes;
}

LostPages::~LostPages() {
  if (range_ == nullptr) return;
  range_->end = 0;
  range_->begin = 0;
  range_->taken = false;
}

std::int64_t LostPages::count() const {
  return range_ == nullptr ? 0 : range_->lost.load(std::memory_order_acquire);
}

}  // namespace penstock
