// Makes calls of the C library fail, for tests: a library for LD_PRELOAD.
//
//     FAIL_CALL=write FAIL_AT=3 FAIL_WITH=28    the third call fails (ENOSPC)
//     FAIL_ALWAYS=1                             and each one after it
//     FAIL_KILL=1                               the program is killed instead,
//                                               before the call
//     FAIL_SLEEP_US=500                         from FAIL_AT on calls take that
//                                               much longer, and none fails; of
//                                               reads those of files on a disk
//     FAIL_COUNT=FILE                           the calls of each kind, when
//                                               main() has returned
//
// A kind stands for all calls that do the same: `open` for openat() and fopen()
// too, `malloc` for all that allocate. Calls are counted from main() on, over
// all threads, and only where they are made through the dynamic linker: what
// the C library does inside itself is the system's matter. Nothing here
// allocates. For glibc.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace {

enum Kind { kOpen, kRead, kWrite, kFsync, kRename, kMmap, kTruncate, kMalloc };
constexpr const char* kNames[] = {"open",   "read", "write",     "fsync",
                                  "rename", "mmap", "ftruncate", "malloc"};
constexpr int kKinds = sizeof(kNames) / sizeof(kNames[0]);

std::atomic<bool> counting{false};
std::atomic<long> calls[kKinds];
int failing = -1;  // set before counting begins, as are the next five
long at = 0;
int with = EIO;
bool always = false;
bool kills = false;
long sleeps = 0;  // microseconds

/// A file of a disk: those of the kernel have no size.
bool has_bytes(int file) {
  struct stat about;
  return ::fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
         about.st_size > 0;
}

/// Counts a call; true: it shall fail, and errno says why. `file`: what it
/// reads, if it is known.
bool fails(Kind kind, int file = -1) {
  if (!counting.load(std::memory_order_relaxed)) return false;
  const long number = ++calls[kind];
  if (kind == failing && number >= at && sleeps > 0) {
    if (file < 0 || has_bytes(file)) ::usleep(static_cast<useconds_t>(sleeps));
    return false;
  }
  if (kind != failing || number < at || (number > at && !always)) return false;
  if (kills) ::kill(::getpid(), SIGKILL);
  errno = with;
  return true;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

void read_settings() {
  const char* kind = ::getenv("FAIL_CALL");
  for (int i = 0; kind != nullptr && i < kKinds; ++i)
    if (::strcmp(kind, kNames[i]) == 0) failing = i;
  if (const char* number = ::getenv("FAIL_AT")) at = ::atol(number);
  if (const char* number = ::getenv("FAIL_WITH")) with = ::atoi(number);
  always = ::getenv("FAIL_ALWAYS") != nullptr;
  kills = ::getenv("FAIL_KILL") != nullptr;
  if (const char* number = ::getenv("FAIL_SLEEP_US")) sleeps = ::atol(number);
}

void write_counts() {
  const char* path = ::getenv("FAIL_COUNT");
  if (path == nullptr) return;
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  for (int i = 0; i < kKinds; ++i)
    ::dprintf(file, "%s %ld\n", kNames[i], calls[i].load());
  ::close(file);
}

using Main = int (*)(int, char**, char**);
Main real_main = nullptr;

int counted_main(int count, char** arguments, char** environment) {
  read_settings();
  counting = true;
  const int result = real_main(count, arguments, environment);
  counting = false;
  write_counts();
  return result;
}

/// The permissions of a file that is made, which not every call has.
int mode_in(int flags, va_list arguments) {
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return makes ? va_arg(arguments, int) : 0;
}

}  // namespace

#define MODE_OF(flags)                  \
  va_list arguments;                    \
  va_start(arguments, flags);           \
  int mode = mode_in(flags, arguments); \
  va_end(arguments)

// What the C library declares as throwing nothing is defined so, too.

// --- The start of the program.

extern "C" {

int __libc_start_main(Main main, int count, char** arguments, void (*init)(),
                      void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  using Start =
      int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  real_main = main;
  return next<Start>("__libc_start_main")(counted_main, count, arguments, init,
                                          fini, rtld_fini, stack_end);
}
}

// --- Files that are opened.

extern "C" {

int open(const char* path, int flags, ...) {
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  MODE_OF(flags);
  return fails(kOpen) ? -1 : real(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  static const auto real = next<int (*)(const char*, int, ...)>("open64");
  MODE_OF(flags);
  return fails(kOpen) ? -1 : real(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  static const auto real = next<int (*)(int, const char*, int, ...)>("openat");
  MODE_OF(flags);
  return fails(kOpen) ? -1 : real(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  static const auto real =
      next<int (*)(int, const char*, int, ...)>("openat64");
  MODE_OF(flags);
  return fails(kOpen) ? -1 : real(folder, path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("fopen");
  return fails(kOpen) ? nullptr : real(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("fopen64");
  return fails(kOpen) ? nullptr : real(path, mode);
}
}

// --- Bytes that are read and written.

extern "C" {

ssize_t read(int file, void* to, size_t bytes) {
  static const auto real = next<ssize_t (*)(int, void*, size_t)>("read");
  return fails(kRead, file) ? -1 : real(file, to, bytes);
}
ssize_t pread(int file, void* to, size_t bytes, off_t from) {
  static const auto real =
      next<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  return fails(kRead, file) ? -1 : real(file, to, bytes, from);
}
ssize_t pread64(int file, void* to, size_t bytes, off64_t from) {
  static const auto real =
      next<ssize_t (*)(int, void*, size_t, off64_t)>("pread64");
  return fails(kRead, file) ? -1 : real(file, to, bytes, from);
}
ssize_t readv(int file, const iovec* to, int count) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int)>("readv");
  return fails(kRead, file) ? -1 : real(file, to, count);
}

dirent* readdir(DIR* folder) {
  static const auto real = next<dirent* (*)(DIR*)>("readdir");
  return fails(kRead) ? nullptr : real(folder);
}

ssize_t write(int file, const void* from, size_t bytes) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  return fails(kWrite) ? -1 : real(file, from, bytes);
}
ssize_t pwrite(int file, const void* from, size_t bytes, off_t to) {
  static const auto real =
      next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return fails(kWrite) ? -1 : real(file, from, bytes, to);
}
ssize_t pwrite64(int file, const void* from, size_t bytes, off64_t to) {
  static const auto real =
      next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return fails(kWrite) ? -1 : real(file, from, bytes, to);
}
ssize_t writev(int file, const iovec* from, int count) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int)>("writev");
  return fails(kWrite) ? -1 : real(file, from, count);
}
}

// --- What makes files last, and what changes their names and sizes.

extern "C" {

int fsync(int file) {
  static const auto real = next<int (*)(int)>("fsync");
  return fails(kFsync) ? -1 : real(file);
}
int fdatasync(int file) {
  static const auto real = next<int (*)(int)>("fdatasync");
  return fails(kFsync) ? -1 : real(file);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return fails(kRename) ? -1 : real(from, to);
}
int renameat(int from_folder, const char* from, int to_folder,
             const char* to) noexcept {
  static const auto real =
      next<int (*)(int, const char*, int, const char*)>("renameat");
  return fails(kRename) ? -1 : real(from_folder, from, to_folder, to);
}

int ftruncate(int file, off_t size) noexcept {
  static const auto real = next<int (*)(int, off_t)>("ftruncate");
  return fails(kTruncate) ? -1 : real(file, size);
}
int ftruncate64(int file, off64_t size) noexcept {
  static const auto real = next<int (*)(int, off64_t)>("ftruncate64");
  return fails(kTruncate) ? -1 : real(file, size);
}
int truncate(const char* path, off_t size) noexcept {
  static const auto real = next<int (*)(const char*, off_t)>("truncate");
  return fails(kTruncate) ? -1 : real(path, size);
}
}

// --- Memory.

extern "C" {

void* mmap(void* where, size_t bytes, int protection, int flags, int file,
           off_t from) noexcept {
  static const auto real =
      next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  return fails(kMmap) ? MAP_FAILED
                      : real(where, bytes, protection, flags, file, from);
}
void* mmap64(void* where, size_t bytes, int protection, int flags, int file,
             off64_t from) noexcept {
  static const auto real =
      next<void* (*)(void*, size_t, int, int, int, off64_t)>("mmap64");
  return fails(kMmap) ? MAP_FAILED
                      : real(where, bytes, protection, flags, file, from);
}
void* mremap(void* old, size_t bytes, size_t to_bytes, int flags,
             ...) noexcept {
  static const auto real =
      next<void* (*)(void*, size_t, size_t, int, ...)>("mremap");
  va_list arguments;
  va_start(arguments, flags);
  void* where =
      (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  return fails(kMmap) ? MAP_FAILED : real(old, bytes, to_bytes, flags, where);
}
}

// dlsym() may allocate: these are reached by their other names.
extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) noexcept {
  return fails(kMalloc) ? nullptr : __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) noexcept {
  return fails(kMalloc) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) noexcept {
  return fails(kMalloc) ? nullptr : __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) noexcept {
  return fails(kMalloc) ? nullptr : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return fails(kMalloc) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** to, size_t alignment, size_t bytes) noexcept {
  if (fails(kMalloc)) return errno;
  void* got = __libc_memalign(alignment, bytes);
  if (got == nullptr) return ENOMEM;
  *to = got;
  return 0;
}
}
