#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "penstock/job/job.h"
#include "penstock/loader/loader.h"
#include "penstock/trainer/fake/steps.h"
#include "penstock/trainer/trainer.h"

namespace penstock {

/// Rows of a CSV file in a folder of its own,
/// prepared and packed for the cpu, and a model of the job's for them: for the
/// tests of this room.
class TableModel {
 public:
  static constexpr std::int64_t kSteps = 60;  ///< that the models reckon with

  /// `job` without its source.
  TableModel(const std::string& csv, Json job) {
    char name[] = "/tmp/penstock-table-XXXXXX";
    folder_ = ::mkdtemp(name);
    const std::string path = folder_ + "/rows.csv";
    std::ofstream(path) << csv;
    job["source"]["kind"] = "csv";
    job["source"]["path"] = path;
    job["device"] = "cpu";
    job_ = parse_job(job);
    device_ = open_device({.kind = "cpu"});
    data_ =
        TableDataset::prepare(dataset_options(job_, MemoryKind::cpu), *device_);
    rows_ = packed(data_, dataset_options(job_, MemoryKind::cpu));
  }
  ~TableModel() { std::filesystem::remove_all(folder_); }
  TableModel(const TableModel&) = delete;
  TableModel& operator=(const TableModel&) = delete;

  const Job& job() const { return job_; }
  const Dataset& rows() const { return *rows_; }
  const FittedFields& fields() const { return *data_->facts().fitted; }
  std::unique_ptr<Stepper> stepper() const { return stepper(job_.model); }
  std::unique_ptr<Stepper> stepper(const ModelSpec& spec) const {
    return make_stepper(spec, *data_->facts().fitted, *device_, kSteps);
  }

  /// Takes steps [begin, end) of the run's order; returns their losses.
  std::vector<double> take(Stepper& stepper, std::int64_t begin,
                           std::int64_t end, Tail tail = Tail::drop) const {
    LoaderOptions options = loader_options(job_, Side::train);
    options.tail = tail;
    return take_steps(stepper, options, rows_, *device_, begin, end);
  }

  Json validate(Stepper& stepper, Tail tail = Tail::exact) const {
    LoaderOptions options = loader_options(job_, Side::val);
    options.tail = tail;
    return validate_rows(stepper, options, rows_, *device_);
  }

 private:
  std::string folder_;
  Job job_;
  std::unique_ptr<Device> device_;
  std::shared_ptr<const TableDataset> data_;
  std::shared_ptr<const Dataset> rows_;  ///< in bins, where they are packed
};

}  // namespace penstock
