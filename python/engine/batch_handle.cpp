#include "python/engine/batch_handle.h"

#include <pthread.h>

#include <atomic>

namespace penstock::python {
namespace {

// Counts forks on the way from the first process to this one.
std::atomic<std::int64_t> generation{0};

void count_forks() {
  static const int once =
      ::pthread_atfork(nullptr, nullptr, [] { ++generation; });
  static_cast<void>(once);
}

}  // namespace

ForkGuard::ForkGuard() {
  count_forks();
  made_in_ = generation;
}

bool ForkGuard::forked() const { return made_in_ != generation; }

void ForkGuard::check() const {
  if (!forked()) return;
  throw Error(ErrorKind::request,
              {.code = "loader.forked",
               .what = "cannot use the loader",
               .where = "a process that was forked from the loader's process",
               .why = "a fork has the loader's memory, but not its threads",
               .next = "open the loader in the process that uses it, or start "
                       "processes by 'spawn' or 'forkserver'"});
}

BatchHandle::~BatchHandle() {
  if (!fork_.forked()) return;
  new auto(std::move(loader_));  // leaked on purpose: the parent's locks may be
  new auto(std::move(batch_));   // held
}

bool BatchHandle::on_host() const {
  return loader_->device().memory_kind() != MemoryKind::cuda;
}

}  // namespace penstock::python
