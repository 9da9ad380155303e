#include "bench/positions.h"

#include <stdlib.h>

#include "penstock/demo/positions.h"

namespace penstock {

Positions::Positions(std::int64_t rows) {
  std::string name =
      (std::filesystem::temp_directory_path() / "penstock-bench-XXXXXX")
          .string();
  PENSTOCK_ASSERT(::mkdtemp(name.data()) != nullptr,
                  "the folder for temporary files can be written to");
  folder_ = name;
  write_positions_demo(
      {.rows = rows,
       .to = {.kind = "sqlite", .path = path(), .table = "measurements"},
       .json_type = "json"});
}

Positions::~Positions() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Json Positions::job() const {
  std::string example = PENSTOCK_BENCH_SOURCE "/examples/positions/job.json";
  Json job = Json::parse(real_files().read(example), example);
  job["source"]["path"] = path();
  job["model"] = "none";
  job["device"] = "cpu";
  job["train"] = Json(Json::Object{});
  job["output"]["dir"] = (folder_ / "runs").string();
  return job;
}

}  // namespace penstock
