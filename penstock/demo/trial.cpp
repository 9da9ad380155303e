#include "penstock/demo/trial.h"

#include <unistd.h>

#include "penstock/base/folder.h"
#include "penstock/demo/positions.h"

namespace penstock {
namespace {

std::filesystem::path new_folder() {
  std::string name =
      (std::filesystem::temp_directory_path() / "penstock-trial-XXXXXX")
          .string();
  if (::mkdtemp(name.data()) == nullptr)
    throw Error(ErrorKind::request,
                {.code = "file.write",
                 .what = "cannot create a folder for a trial",
                 .where = name,
                 .why = "the folder for temporary files is not writable",
                 .next = "name another folder with TMPDIR"});
  return name;
}

Json document_of(const std::filesystem::path& database,
                 const std::string& device, const std::string& precision) {
  Json document = Json::parse(R"({
    "source": {"kind": "sqlite", "table": "measurements"},
    "fields": {
      "receivers": {"json_set": {"column": "receivers",
        "keys": ["snr_db", "freq_offset_hz", "lat", "lon", "alt_m",
                 "signal_present"],
        "max": 10, "overflow": "strongest", "sort_by": "snr_db"},
        "standardize": true},
      "target": {"columns": ["tx_lat", "tx_lon"], "standardize": true}},
    "split": {"train": 0.8, "val": 0.2, "seed": 1, "by": "session"},
    "loader": {"batch_size": 64, "seed": 1, "tune": "off"},
    "model": {"kind": "set_position", "set": "receivers", "target": "target",
      "latitude": "lat", "longitude": "lon", "strength": "snr_db"},
    "train": {"epochs": 8, "warmup_steps": 5}})",
                              "the trial's job");
  document["source"]["path"] = database.string();
  document["device"] = device;
  document["train"]["precision"] = precision;
  return document;
}

Job job_of(const std::filesystem::path& folder, const std::string& device,
           const std::string& precision) {
  DemoOptions demo;
  demo.rows = 600;
  demo.to.kind = "sqlite";
  demo.to.path = (folder / "positions.sqlite").string();
  demo.to.table = "measurements";
  write_positions_demo(demo);
  return parse_job(document_of(demo.to.path, device, precision));
}

/// A folder that is removed unless it is kept.
struct Removed {
  std::filesystem::path folder;
  bool kept = false;
  ~Removed() {
    if (!kept) remove_tree(folder);
  }
};

}  // namespace

Trial::Trial(const std::string& device, const std::string& precision)
    : folder_(new_folder()) {
  Removed removed{folder_};
  job_ = job_of(folder_, device, precision);
  device_ = device_of_run(job_, {});
  session_ = open_loader(job_, {.timed = true, .device = device_});
  stepper_ = make_stepper(job_, {}, session_);
  removed.kept = true;
}

Trial::~Trial() {
  stepper_.reset();
  session_.reset();
  remove_tree(folder_);
}

double Trial::step() {
  std::optional<Batch> batch = session_->next();
  PENSTOCK_ASSERT(batch, "a trial has batches enough");
  stepper_->step(session_->shared(std::move(*batch)), session_->stream(),
                 steps_++);
  const std::vector<double> losses = stepper_->losses(true);
  session_->end_step();
  PENSTOCK_ASSERT(!losses.empty(), "a step has a loss");
  return losses.back();
}

Json Trial::validate() {
  auto loader = session_->open_side(Side::val);
  for (std::int64_t i = 0; i < loader->steps_per_epoch(); ++i)
    stepper_->validate(
        session_->shared(promised(loader->next(session_->stream()))),
        session_->stream());
  return stepper_->validated().metrics;
}

}  // namespace penstock
