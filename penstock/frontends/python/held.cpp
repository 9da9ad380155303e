#include "penstock/frontends/python/held.h"

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
               .where = "a process that was forked from the loader's own",
               .why = "a fork has the loader's memory, but not its threads",
               .next = "open the loader in the process that uses it, or start "
                       "processes by 'spawn' or 'forkserver'"});
}

Held::~Held() {
  if (fork_.forked()) {  // leaked on purpose: the parent's locks may be held
    new auto(std::move(loader_));
    new auto(std::move(batch_));
    return;
  }
  try {
    for (auto& [handle, stream] : consumers_)
      loader_->follow(*stream_, *stream);
  } catch (const std::exception& error) {
    log(LogLevel::warning, error.what());
  }
  loader_->release(std::move(batch_));
}

bool Held::on_host() const {
  return loader_->device().memory_kind() != MemoryKind::cuda;
}

void Held::wait_on(void* handle) {
  Lock lock(mutex_);
  if (handle != nullptr && stream_->handle() == handle) return;
  std::unique_ptr<Stream>& stream = consumers_[handle];
  if (stream != nullptr) return;
  stream = loader_->device().borrow_stream(handle);
  loader_->wait_on(batch_, *stream);
}

}  // namespace penstock::python
