#include "penstock/sources/stop.h"

namespace penstock {
namespace {

constexpr const char* kCode = "run.stopped";

}  // namespace

void end_if_stopped(StopFlag stop) {
  if (!stop.is_set()) return;
  throw Error(ErrorKind::request, {.code = kCode,
                                   .what = "stopped on request",
                                   .where = "the run",
                                   .why = "a signal was received",
                                   .next = "continue with --resume"});
}

bool is_stop(const Error& error) { return error.parts().code == kCode; }

}  // namespace penstock
