#include "python/engine/open.h"

#include <future>
#include <thread>

#include "python/engine/gil.h"
#include "python/engine/torch_memory.h"

namespace penstock::python {
namespace {

// How long Ctrl-C waits for its turn at most.
constexpr std::chrono::milliseconds kTurn(50);
// How long it then waits for a statement that was sent.
constexpr std::chrono::milliseconds kPatience(500);

Job job_of(const OpenRequest& opening) {
  Json document = Json::parse(opening.job, "the job");
  for (const std::string& set : opening.sets) apply_setting(document, set);
  if (opening.rows.has_fields) return parse_job_of_source(document);
  return opening.rows.maker ? parse_job_of_rows(document) : parse_job(document);
}

Side side_named(const std::string& name) {
  if (name == "train") return Side::train;
  if (name == "val") return Side::val;
  throw Error(ErrorKind::request, {.code = "loader.side",
                                   .what = "cannot open the loader",
                                   .where = "side",
                                   .why = "found '" + name + "'",
                                   .next = "use \"train\" or \"val\""});
}

/// Opens on a thread of its own, so that this one can handle signals meanwhile.
struct PendingOpen {
  OpenRequest opening;
  OpenOptions options;
  DeviceAllocator allocator;
  std::shared_ptr<std::atomic<bool>> stop =
      std::make_shared<std::atomic<bool>>(false);
  std::promise<std::shared_ptr<Session>> made;

  void open() {
    try {
      const Job job = job_of(opening);
      options.device = open_device(job.device, allocator);
      made.set_value(open_loader(job, options));
    } catch (...) {
      made.set_exception(std::current_exception());
    }
  }
};

}  // namespace

std::shared_ptr<Session> opened(const OpenRequest& opening) {
  auto way = std::make_shared<PendingOpen>();
  way->opening = opening;
  way->allocator = torch_allocator();
  way->options = {.side = side_named(opening.side),
                  .rank = {opening.rank, opening.world},
                  .batches = -1,
                  .timed = true,
                  .stop = way->stop,
                  .rows = opening.rows.maker,
                  .agrees_later = opening.agrees_later};
  std::future<std::shared_ptr<Session>> made = way->made.get_future();
  std::thread opener([way] { way->open(); });
  auto ends_within = [&](std::chrono::milliseconds time) {
    GilRelease meanwhile;
    return made.wait_for(time) == std::future_status::ready;
  };
  while (!ends_within(kTurn)) {
    if (PyErr_CheckSignals() == 0) continue;
    nb::python_error interrupted;
    *way->stop = true;
    // A statement that a server is slow to answer ends later, by itself.
    bool ended = ends_within(kPatience);
    {
      GilRelease meanwhile;  // what was made may have threads that call Python
      ended ? opener.join() : opener.detach();
      made = {};
      way.reset();
    }
    throw interrupted;
  }
  opener.join();
  return made.get();
}

std::string source_section(const std::string& uri) {
  return penstock::source_section(parse_source_spec(Json(uri), "source"))
      .dump();
}

}  // namespace penstock::python
