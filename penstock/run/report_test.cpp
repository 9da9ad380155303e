#include "penstock/run/report.h"

#include <gtest/gtest.h>

#include "penstock/demo/fake/positions_run.h"

namespace penstock {
namespace {

/// A GPU of which the driver of this machine knows nothing.
class UnknownGpu : public Device {
 public:
  UnknownGpu() : Device(MemoryKind::cuda, 0, "ffffffff:ff:1f.7") {}

  std::string name() const override { return "cuda:0"; }
  Buffer allocate(std::size_t) override { return {}; }
  Buffer allocate_pinned(std::size_t) override { return {}; }
  std::unique_ptr<Stream> make_stream() override { return nullptr; }
  DeviceMemory memory() const override { return {}; }
  Clock& clock() const override { return wall_clock(); }
};

/// `machine.gpu` of what a run tells at its start and at its end.
std::vector<const Json*> gpus(const Json& start, const Json& end) {
  return {start.find("machine")->find("gpu"), end.find("machine")->find("gpu")};
}

TEST(Report, TellsOfTheGpuWithNullForWhatIsNotKnown) {
  PositionsRun positions;
  Job job = positions.job();
  UnknownGpu device;
  Json start = run_json(job, device, "");
  Json end = report_json(RunNumbers(), job, nullptr, device);
  for (const Json* gpu : gpus(start, end)) {
    ASSERT_NE(gpu, nullptr);
    EXPECT_EQ(*gpu, GpuUse().json());
  }
}

TEST(Report, TellsOfNoGpuWhereTheDeviceIsNone) {
  PositionsRun positions;
  Job job = positions.job();
  for (const char* kind : {"cpu", "sim"}) {
    std::unique_ptr<Device> device = open_device({.kind = kind});
    Json start = run_json(job, *device, "");
    Json end = report_json(RunNumbers(), job, nullptr, *device);
    for (const Json* gpu : gpus(start, end)) EXPECT_EQ(gpu, nullptr) << kind;
  }
}

}  // namespace
}  // namespace penstock
