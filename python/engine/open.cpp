#include "python/engine/open.h"

#include "python/engine/interruptible.h"
#include "python/engine/torch_memory.h"

namespace penstock::python {
namespace {

Job job_of(const OpenRequest& opening) {
  Json document = Json::parse(opening.job, "the job");
  for (const std::string& set : opening.sets) apply_setting(document, set);
  if (opening.rows.schema)
    return parse_job_of_source(document, *opening.rows.schema);
  return opening.rows.maker ? parse_job_of_rows(document) : parse_job(document);
}

Side side_named(const std::string& name) {
  if (name == "train") return Side::train;
  if (name == "val") return Side::val;
  if (name == "test") return Side::test;
  throw Error(ErrorKind::request,
              {.code = "loader.side",
               .what = "cannot open the loader",
               .where = "side",
               .why = "found '" + name + "'",
               .next = "use \"train\", \"val\" or \"test\""});
}

}  // namespace

std::shared_ptr<Session> opened(const OpenRequest& opening) {
  OpenOptions options{.side = side_named(opening.side),
                      .rank = {opening.rank, opening.world},
                      .batches = -1,
                      .timed = true,
                      .rows = opening.rows.maker,
                      .agrees_later = opening.agrees_later};
  return interruptible<std::shared_ptr<Session>>(
      [opening, options, allocator = torch_allocator()](const Stop& stop) {
        const Job job = job_of(opening);
        OpenOptions stopped = options;
        stopped.stop = stop;
        stopped.device = open_device(job.device, allocator);
        std::shared_ptr<Session> session = open_loader(job, stopped);
        if (stopped.side == Side::train && stopped.rank.rank == 0)
          tell_unknown_class(job, *session->opened(), nullptr);
        return session;
      });
}

std::string source_section(const std::string& uri) {
  return penstock::source_section(parse_source_spec(Json(uri), "source"))
      .dump();
}

}  // namespace penstock::python
