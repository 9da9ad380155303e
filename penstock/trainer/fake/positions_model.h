#pragma once

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "penstock/demo/fake/positions_run.h"
#include "penstock/models/set_position/descriptor.h"
#include "penstock/trainer/fake/steps.h"
#include "penstock/trainer/trainer.h"

namespace penstock {

/// The demo's rows in a folder of their own and prepared for a device, and a
/// small model for them: for the tests of this room.
class PositionsModel {
 public:
  static constexpr std::int64_t kSteps = 30;  ///< that the models reckon with

  explicit PositionsModel(const std::string& device) {
    char name[] = "/tmp/penstock-trainer-XXXXXX";
    folder_ = ::mkdtemp(name);
    DemoOptions demo{.rows = 600};
    demo.to = {.kind = "sqlite", .path = folder_ + "/d.sqlite", .table = "m"};
    write_positions_demo(demo);
    device_ = open_device({.kind = device});
    data_ = prepare({});
  }
  ~PositionsModel() { std::filesystem::remove_all(folder_); }
  PositionsModel(const PositionsModel&) = delete;
  PositionsModel& operator=(const PositionsModel&) = delete;

  Device& device() const { return *device_; }
  std::shared_ptr<const TableDataset> data() const { return data_; }

  Job job(const std::vector<std::string>& sets = {}) const {
    Json document = Json::parse(R"({
      "source": {"kind": "sqlite", "table": "m"},
      "fields": {
        "receivers": {"json_set": {"column": "receivers",
          "keys": ["snr_db", "lat", "lon", "signal_present"], "max": 10,
          "overflow": "strongest", "sort_by": "snr_db"}, "standardize": true},
        "target": {"columns": ["tx_lat", "tx_lon"], "standardize": true}},
      "split": {"train": 0.8, "val": 0.2, "by": "session"},
      "loader": {"batch_size": 64}, "device": "cpu"})",
                                "test");
    document["source"]["path"] = folder_ + "/d.sqlite";
    for (const std::string& set : sets) apply_setting(document, set);
    return parse_job(document);
  }
  std::shared_ptr<const TableDataset> prepare(
      const std::vector<std::string>& sets) const {
    return TableDataset::prepare(dataset_options(job(sets), MemoryKind::cpu),
                                 *device_);
  }

  static SetPosition& settings_of(ModelSpec& spec) {
    return std::any_cast<SetPosition&>(spec.own);
  }
  static ModelSpec spec() {
    ModelSpec spec = set_position_model().settings.defaults();
    SetPosition& settings = settings_of(spec);
    settings.set = "receivers";
    settings.target = "target";
    settings.latitude = "lat";
    settings.longitude = "lon";
    settings.strength = "snr_db";
    settings.width = 16;
    spec.learning.lr = 5e-3;
    spec.learning.warmup_steps = 5;
    spec.learning.threads = 1;
    return spec;
  }
  std::unique_ptr<Stepper> stepper(const ModelSpec& spec) const {
    return make_stepper(spec, *data_->facts().fitted, *device_, kSteps);
  }

  /// Takes steps [begin, end) of the run's order; returns their losses.
  std::vector<double> take(Stepper& stepper, std::int64_t begin,
                           std::int64_t end,
                           std::shared_ptr<const TableDataset> of,
                           Tail tail = Tail::drop) const {
    LoaderOptions options = loader_options(job(), Side::train);
    options.tail = tail;
    return take_steps(stepper, options, std::move(of), *device_, begin, end);
  }

  Json validate(Stepper& stepper, Tail tail = Tail::exact) const {
    LoaderOptions options = loader_options(job(), Side::val);
    options.tail = tail;
    return validate_rows(stepper, options, data_, *device_);
  }

 private:
  std::string folder_;
  std::unique_ptr<Device> device_;
  std::shared_ptr<const TableDataset> data_;
};

}  // namespace penstock
