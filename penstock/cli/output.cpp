#include "penstock/cli/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "penstock/base/printable.h"
namespace penstock {
namespace {

bool is_closed_terminal(int reason) {
  struct stat found {};
  return reason == EIO && ::fstat(STDOUT_FILENO, &found) == 0 &&
         S_ISCHR(found.st_mode);
}

}  // namespace

void print(const std::string& text) {
  print_as_is(is_printable(text) ? text : printable_lines(text));
}

// Flushed each time: an error must be seen where it happens and not at exit,
// and a pipe's reader wants whole lines. EPIPE, and EIO of a terminal that was
// closed, are the reader's wish to stop, not a failure.
void print_as_is(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
  int reason = errno;
  if (reason == EPIPE || is_closed_terminal(reason)) throw OutputClosed();
  throw Error(ErrorKind::request,
              {.code = "cli.output",
               .what = "cannot write the result",
               .where = "standard output",
               .why = std::strerror(reason),
               .next = "check that standard output is open and writes to a "
                       "disk with free space"});
}

void print_document(const Json& json) { print(json.dump(2) + "\n"); }

int report_error(const Error& error, bool json) {
  // When standard output itself fails, the error is shown on standard error.
  bool printed =
      json && error.parts().code != "cli.output" &&
      std::fputs((printable(error.json()) + "\n").c_str(), stdout) >= 0 &&
      std::fflush(stdout) == 0;
  if (!printed) std::fprintf(stderr, "penstock: %s\n", error.what());
  return exit_code_of(error.kind());
}

namespace {

Error lack_of_memory() {
  return Error(ErrorKind::out_of_memory,
               {.code = "memory.host",
                .what = "out of memory",
                .where = "this host",
                .why = "the system refused a memory allocation",
                .next = "set \"loader.cache\" to \"none\", or give the job "
                        "more memory"});
}

}  // namespace

Error error_of_exception() {
  std::string why = "the exception is not a std::exception";
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return lack_of_memory();
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::not_enough_memory) return lack_of_memory();
    why = error.what();
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {
  }
  return Error(ErrorKind::internal,
               {.code = "internal.exception",
                .what = "unexpected exception",
                .where = "the program",
                .why = std::move(why),
                .next = "this is a bug in Penstock, please report it"});
}

int report_exception(bool json) noexcept try {
  return report_error(error_of_exception(), json);
} catch (...) {
  // Words that need no memory.
  constexpr const char* kDocument =
      "{\"error\":{\"kind\":\"out_of_memory\",\"code\":\"memory.host\","
      "\"what\":\"out of memory\",\"where\":\"this host\","
      "\"why\":\"the system refused a memory allocation\",\"next\":\"give the "
      "job more "
      "memory\"}}\n";
  constexpr const char* kLine =
      "penstock: the host is out of memory; give the job more memory\n";
  std::fputs(json ? kDocument : kLine, json ? stdout : stderr);
  std::fflush(stdout);
  return exit_code_of(ErrorKind::out_of_memory);
}

}  // namespace penstock
