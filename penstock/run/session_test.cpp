#include "penstock/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "penstock/dataset/fake/spoiled_dataset.h"
#include "penstock/demo/fake/positions_run.h"
#include "penstock/report/report.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// The ids of the batches that are left.
std::vector<std::vector<SampleId>> ids_of(Session& loader,
                                          std::int64_t batches = 1 << 20) {
  std::vector<std::vector<SampleId>> ids;
  for (; batches > 0; --batches) {
    std::optional<Batch> batch = loader.next();
    if (!batch) break;
    ids.emplace_back(batch->ids().begin(), batch->ids().end());
  }
  return ids;
}

template <class Call>
ErrorParts parts_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.parts();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

class OpenLoaderTest : public testing::Test {
 protected:
  std::unique_ptr<Session> open(const OpenOptions& options = {},
                                const std::vector<std::string>& sets = {}) {
    return open_loader(positions_.job(sets), options);
  }
  PositionsRun positions_;
};

TEST_F(OpenLoaderTest, EndsWithTheJobsEpochs) {
  auto loader = open({}, {"train.epochs=2"});
  EXPECT_EQ(std::ssize(ids_of(*loader)), 2 * loader->steps_per_epoch());
  EXPECT_EQ(ids_of(*open({}, {"train.max_steps=3"})).size(), 3u);
  EXPECT_EQ(ids_of(*open({.batches = 5})).size(), 5u);
}

TEST_F(OpenLoaderTest, GoesOnWhereAStateWasSavedWithOtherWorkersAndTiers) {
  auto whole = open({.batches = 40});
  std::vector<std::vector<SampleId>> all = ids_of(*whole);
  for (std::int64_t taken : {0, 3, 17}) {
    auto before = open({.batches = -1});
    ids_of(*before, taken);
    Json state = before->state();
    EXPECT_LE(state.dump().size(), 128u);
    auto after =
        open({.batches = -1}, {"loader.workers=0", "loader.cache=none"});
    after->load_state(state);
    EXPECT_EQ(ids_of(*after, 40 - taken),
              std::vector(all.begin() + taken, all.end()))
        << taken;
  }
}

TEST_F(OpenLoaderTest, AStateTakesAtMost128BytesWhereverItIs) {
  auto loader = open({.batches = -1});
  loader->seek({.epoch = INT64_MAX - 1, .step = 1});
  EXPECT_LE(loader->state().dump().size(), 128u);
}

TEST_F(OpenLoaderTest, GoesOnFromTheStateOfARun) {
  auto loader = open({.batches = -1});
  const Job job = positions_.job();
  Order order = order_of(loader_options(job, Side::train), loader->rows());
  SavedState saved{.position = {.epoch = 1, .step = 2},
                   .fingerprint = loader->rows().fingerprint(),
                   .order = order_json(order, job.split)};
  loader->load_state(json_of(saved));
  EXPECT_EQ(loader->position(), saved.position);
  EXPECT_EQ(loader->next()->at(), saved.position);
  auto val = open({.side = Side::val, .batches = -1});
  EXPECT_EQ(parts_of([&] { val->load_state(json_of(saved)); }).code,
            "resume.other_order");
}

TEST_F(OpenLoaderTest, OpensWhereARunStoppedWithItsStatistics) {
  auto first = open();
  Json statistics = first->opened()->statistics();
  std::vector<std::vector<SampleId>> all = ids_of(*first);
  SavedState saved{.position = {.epoch = 0, .step = 4},
                   .steps_taken = 4,
                   .fingerprint = first->rows().fingerprint(),
                   .order = order_json(first->order(), positions_.job().split),
                   .statistics_sha256 = sha256_of_statistics(statistics)};
  auto rest = open({.statistics = statistics, .state = saved});
  EXPECT_EQ(rest->position(), saved.position);
  EXPECT_EQ(ids_of(*rest), std::vector(all.begin() + 4, all.end()));

  saved.statistics_sha256[0] ^= 1;
  EXPECT_EQ(parts_of([&] { open({.state = saved}); }).code,
            "resume.other_statistics");
  EXPECT_EQ(parts_of([&] { open()->load_state(json_of(saved)); }).code,
            "resume.other_statistics");
}

TEST_F(OpenLoaderTest, RowsOfSourcesMadeOfOthersAreThoseOfTheWhole) {
  auto with = [&](const std::string& kind, const char* first,
                  const char* second) {
    Json document = positions_.job().document;
    Json part = *document.find("source");
    Json source;
    source["kind"] = kind;
    for (const char* where : {first, second}) {
      part["where"] = where;
      source["sources"].push_back(part);
    }
    document["source"] = source;
    return parse_job(document);
  };
  const std::string whole = open()->rows().fingerprint();
  for (const char* workers : {"0", "1", "2", "8"}) {
    std::string set = std::string("loader.workers=") + workers;
    Job both = with("concatenated", "id % 2 = 0", "id % 2 = 1");
    apply_setting(both.document, set);
    auto session = open_loader(parse_job(both.document));
    EXPECT_EQ(session->rows().fingerprint(), whole);
    EXPECT_EQ(report_of(*session).find("dataset")->find("rows")->integer(),
              600);
    EXPECT_EQ(open_loader(with("joined", "1", "1"))->rows().fingerprint(),
              whole);
  }
  EXPECT_THROW(open_loader(with("concatenated", "id < 50", "id < 9")), Error);
  EXPECT_THROW(open_loader(with("joined", "1", "id < 9")), Error)
      << "a row that the second one lacks, and on_bad is stop";
}

TEST_F(OpenLoaderTest, UsesADeviceThatIsOpenAndSaysWhatItIsAboutToDo) {
  std::shared_ptr<Device> device = open_device({.kind = "cpu"});
  std::string said;
  auto loader = open({.device = device, .note = [&](const std::string& line) {
                        said += line + "\n";
                      }});
  EXPECT_EQ(&loader->device(), device.get());
  EXPECT_THAT(said, HasSubstr("the initial scan may use"));
  EXPECT_THAT(said, HasSubstr("where the rows will be stored"));
}

TEST_F(OpenLoaderTest, BadSamplesAreCountedAndListedOnceEach) {
  auto make = [](const Job&, Device&, StopFlag) {
    return std::make_shared<const SpoiledDataset>(
        5000, [](SampleId id) { return id % 2500 == 7; });
  };
  for (const char* workers : {"0", "1", "2", "8"}) {
    auto loader =
        open({.rows = make}, {"loader.on_bad=mask", "train.epochs=3",
                              std::string("loader.workers=") + workers});
    RunFolder folder(real_files(), positions_.path("runs"), Json::Object{});
    Quarantine quarantine(folder);
    while (std::optional<Batch> batch = loader->next())
      quarantine.add(*batch, *loader->opened());
    std::string lines =
        real_files().read(folder.path().string() + "/quarantine.jsonl");
    EXPECT_EQ(std::ranges::count(lines, '\n'), 2) << lines;
    EXPECT_THAT(lines, HasSubstr("\"key\": 7,"));
    EXPECT_THAT(lines, HasSubstr("\"key\": 2507,"));
    EXPECT_THAT(lines, HasSubstr("found a rotten number"));
    EXPECT_EQ(report_of(*loader).find("bad_samples")->integer(), 6);
  }
}

TEST_F(OpenLoaderTest, RefusesAStateOfOtherRowsOrderOrSide) {
  auto loader = open();
  Json state = loader->state();
  auto code_with = [&](const OpenOptions& options,
                       const std::vector<std::string>& sets) {
    auto other = open(options, sets);
    return parts_of([&] { other->load_state(state); }).code;
  };
  EXPECT_EQ(code_with({}, {"source.where=id > 3"}), "resume.other_data");
  EXPECT_EQ(code_with({}, {"fields.target.standardize=false"}),
            "resume.other_data");
  EXPECT_EQ(code_with({}, {"loader.seed=99"}), "resume.other_order");
  EXPECT_EQ(code_with({.side = Side::val}, {}), "resume.other_order");
  state["step"] = 1 << 20;
  EXPECT_THAT(parts_of([&] { loader->load_state(state); }).why,
              HasSubstr("an epoch has"));
  state["more"] = 1;
  EXPECT_THAT(parts_of([&] { loader->load_state(state); }).where,
              HasSubstr("more"));
}

TEST_F(OpenLoaderTest, RefusesOtherRowsThanTheJobNames) {
  std::string found = open()->rows().fingerprint();
  open({}, {"source.fingerprint=" + found});
  open({}, {"source.fingerprint=" + found.substr(0, 16)});
  try {
    open({}, {"source.where=id > 3", "source.fingerprint=" + found});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::source);
    EXPECT_EQ(error.parts().code, "source.fingerprint");
    EXPECT_THAT(error.parts().why, HasSubstr(found));
  }
}

TEST_F(OpenLoaderTest, AFingerprintIs16To64Digits) {
  for (std::string wrong :
       {std::string(), std::string(15, 'a'), std::string(65, 'a'),
        std::string(16, 'A'), std::string(16, 'x')})
    EXPECT_EQ(parts_of([&] { open({}, {"source.fingerprint=" + wrong}); }).code,
              "settings.value");
}

TEST_F(OpenLoaderTest, PeekingLeavesTheBatchTheNext) {
  auto loader = open({.batches = -1});
  ids_of(*loader, 2);
  std::optional<Batch> peeked = loader->peek();
  std::optional<Batch> next = loader->next();
  EXPECT_EQ(peeked->at(), next->at());
  EXPECT_THAT(peeked->ids(), testing::ElementsAreArray(next->ids()));
}

TEST_F(OpenLoaderTest, GivesEachRankItsShare) {
  auto alone = open();
  std::vector<SampleId> shared;
  for (int rank : {0, 1}) {
    auto loader = open({.rank = {rank, 2}},
                       {"source.fingerprint=" + alone->rows().fingerprint()});
    std::vector<SampleId> ids = ids_of(*loader, 1).front();
    shared.insert(shared.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(shared, ids_of(*alone, 1).front());
  EXPECT_EQ(parts_of([&] { open({.rank = {2, 2}}); }).code, "loader.rank");
}

TEST_F(OpenLoaderTest, TimesTheStepsOfALoop) {
  auto loader =
      open({.batches = -1, .timed = true},
           {R"(device={"kind": "sim", "step_ms": 10, "clock": "virtual"})"});
  ids_of(*loader, 11);
  Json report = report_of(*loader);
  EXPECT_EQ(report.find("steps")->integer(), 11);
  EXPECT_NEAR(report.find("au")->number(), 1.0, 0.01);
  EXPECT_EQ(report.find("verdict")->find("limit")->string(), "compute");
}

TEST_F(OpenLoaderTest, ReportsMemoryAsPlannedAndAsUsed) {
  auto loader = open({.batches = -1}, {"device=sim", "loader.cache=device"});
  ids_of(*loader, 2);
  Json report = report_of(*loader);
  const Json& memory = *report.find("memory");
  EXPECT_EQ(memory.find("planned")->find("device_bytes")->integer(),
            memory.find("used")->find("device_bytes")->integer());
  EXPECT_GT(memory.find("used")->find("host_bytes")->integer(), 1 << 20);
  EXPECT_GT(memory.find("used")->find("host_bytes_before")->integer(), 1 << 20);
  std::int64_t rows = 0, batches = 0;
  for (const Json& held : memory.find("held")->array()) {
    if (held.find("in")->string() != "device") continue;
    if (held.find("for")->string() == "rows")
      rows = held.find("bytes")->integer();
    if (held.find("for")->string() == "batches")
      batches = held.find("bytes")->integer();
  }
  EXPECT_GT(rows, 0);
  EXPECT_EQ(rows + batches,
            memory.find("used")->find("device_bytes")->integer());
}

TEST_F(OpenLoaderTest, AStepThatIsMarkedIsTheTimeOfTheStep) {
  auto loader = open({.batches = -1, .timed = true}, {"device=cpu"});
  for (int step = 0; step < 4; ++step) {
    std::optional<Batch> batch = loader->next();
    loader->begin_step();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    loader->end_step();
    std::this_thread::sleep_for(std::chrono::milliseconds(8));
  }
  Json report = report_of(*loader);
  EXPECT_LT(report.find("au")->number(), 0.5);
  EXPECT_GT(report.find("parts")->find("host")->number(), 0.5);
}

TEST_F(OpenLoaderTest, LeavesOutTheTimeInWhichTheLoopRests) {
  auto loader = open({.batches = -1, .timed = true}, {"device=cpu"});
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int step = 0; step < 4; ++step) {
      std::optional<Batch> batch = loader->next();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    loader->pause();
    EXPECT_EQ(loader->clock().total().steps, 4 * epoch + 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_LT(seconds(loader->clock().total().wall), 0.1);
  loader->close();
  loader->pause();
}

TEST_F(OpenLoaderTest, StepsOnAnotherDeviceAreThoseThatAreTold) {
  auto loader = open({.batches = -1, .timed = true}, {"device=cpu"});
  loader->next();
  loader->time_elsewhere(true);
  ids_of(*loader, 4);
  EXPECT_EQ(loader->clock().total().steps, 0);
  loader->add_step({.steps = 1,
                    .samples = 24,
                    .wall = std::chrono::milliseconds(10),
                    .compute = std::chrono::milliseconds(9),
                    .wait_data = std::chrono::milliseconds(1)},
                   0);
  Json report = report_of(*loader, false);
  EXPECT_NEAR(report.find("au")->number(), 0.9, 1e-9);
  EXPECT_NEAR(report.find("samples_per_s")->number(), 2400, 1e-6);
  loader->time_elsewhere(false);
  ids_of(*loader, 4);
  loader->pause();
  EXPECT_EQ(loader->clock().total().steps, 5);
}

TEST_F(OpenLoaderTest, KeepsNoMoreThanTheLastEpochsForItsReport) {
  auto loader = open({.batches = -1, .timed = true});
  std::size_t listed = OpenOptions().epochs_listed;
  auto most = static_cast<std::int64_t>(listed);
  for (std::int64_t epoch = 0; epoch < most + 5; ++epoch) {
    loader->seek({.epoch = epoch});
    ASSERT_TRUE(loader->next());
  }
  Json report = report_of(*loader);
  const Json::Array& told = report.find("epochs")->array();
  ASSERT_EQ(told.size(), listed);
  EXPECT_EQ(told.front().find("epoch")->integer(), 5);
  EXPECT_EQ(told.back().find("epoch")->integer(), most + 4);
  loader->seek({.epoch = 0});  // an earlier one is told too
  ASSERT_TRUE(loader->next());
  ASSERT_TRUE(loader->next());
  report = report_of(*loader);
  ASSERT_EQ(report.find("epochs")->array().size(), listed);
  const Json& first = report.find("epochs")->array().front();
  EXPECT_EQ(first.find("epoch")->integer(), 0);
  EXPECT_EQ(first.find("samples")->integer(), 2 * 32);
}

TEST_F(OpenLoaderTest, TellsItsProgressOnceAStepIsDone) {
  auto loader = open({.batches = -1, .timed = true});
  std::vector<Progress> told;
  loader->report_progress(
      {.progress = [&](const Progress& p) { told.push_back(p); }}, 0, 3);
  loader->next();
  EXPECT_TRUE(told.empty());
  ids_of(*loader, 2);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front().step, 1);
  EXPECT_EQ(told.front().steps, loader->steps_per_epoch());
  loader->pause();
  EXPECT_EQ(told.back().step, 3);
  EXPECT_EQ(told.back().steps_left, 0);
}

TEST_F(OpenLoaderTest, CountsTheStagesAcrossASeek) {
  auto loader = open({.batches = -1});
  ids_of(*loader, 3);
  loader->seek({.epoch = 7});
  ids_of(*loader, 2);
  Json report = report_of(*loader);
  const Json& deliver = report.find("stages")->array().back();
  EXPECT_EQ(deliver.find("rows")->integer(), report.find("samples")->integer());
  const Snapshot all = loader->numbers().snapshot;
  EXPECT_EQ(all.samples, report.find("samples")->integer());
  EXPECT_GT(all.samples, all.parts.samples) << "the first step is not timed";
}

RowFunction tenfold() {
  return {.layout = layout_of_tensors({{.name = "n", .dtype = Dtype::int64}}),
          .fingerprint = "tenfold",
          .call = [](const RowCall& call) {
            auto* out = reinterpret_cast<std::int64_t*>(call.out[0].data);
            for (SampleId id : call.ids) *out++ = 10 * id;
          }};
}

std::vector<std::int64_t> first_tensor(const Batch& batch) {
  batch.wait();
  const TensorView& view = batch.tensors()[0].view;
  const auto* numbers = reinterpret_cast<const std::int64_t*>(view.data);
  return {numbers, numbers + elements_of(view.shape)};
}

TEST_F(OpenLoaderTest, RowsOfOnesOwnNeedNoSource) {
  Job job = parse_job_of_rows(Json::parse(
      R"({"loader": {"batch_size": 4, "shuffle": false}, "device": "cpu"})",
      "a test"));
  auto loader =
      open_loader(job, {.rows = [](const Job&, Device&, StopFlag) {
                    return std::make_shared<FunctionDataset>(9, tenfold());
                  }});
  EXPECT_EQ(loader->steps_per_epoch(), 2);
  EXPECT_EQ(loader->opened()->facts().scan, nullptr);
  EXPECT_THAT(first_tensor(*loader->next()),
              testing::ElementsAre(0, 10, 20, 30));
  Json report = report_of(*loader);
  EXPECT_EQ(report.find("dataset")->find("rows")->integer(), 9);
  EXPECT_EQ(report.find("plan")->find("tier")->string(), "none");
  EXPECT_THROW(parse_job_of_rows(Json::parse(R"({"source": {}})", "a test")),
               Error);
}

TEST_F(OpenLoaderTest, MapsFromTheNextBatchOn) {
  auto plain = open({.batches = -1});
  std::vector<std::vector<SampleId>> ids = ids_of(*plain, 5);
  auto loader = open({.batches = -1});
  Json before = loader->state();
  EXPECT_EQ(ids_of(*loader, 2).size(), 2u);
  loader->map(tenfold());
  for (std::size_t i = 2; i < 5; ++i) {
    std::optional<Batch> batch = loader->next();
    EXPECT_THAT(batch->ids(), testing::ElementsAreArray(ids[i]));
    for (std::int64_t j = 0; std::int64_t n : first_tensor(*batch))
      EXPECT_EQ(n, 10 * batch->ids()[static_cast<std::size_t>(j++)]);
  }
  EXPECT_NE(loader->opened()->facts().scan, nullptr);
  EXPECT_EQ(parts_of([&] { loader->load_state(before); }).code,
            "resume.other_data");
  Json report = report_of(*loader);
  std::vector<std::string> names;
  for (const Json& stage : report.find("stages")->array())
    names.push_back(stage.find("name")->string());
  EXPECT_THAT(names, testing::ElementsAre("plan", "gather", "map", "deliver"));
}

// As when Python's garbage collector runs in a function of rows.
TEST_F(OpenLoaderTest, AFunctionOfRowsMayReleaseABatchWhileOneIsWaitedFor) {
  for (const char* workers : {"0", "1", "2", "8"}) {
    auto loader =
        open({.batches = -1}, {std::string("loader.workers=") + workers});
    std::optional<Batch> held = loader->next();
    RowFunction releasing = tenfold();
    releasing.call =
        [&, make = releasing.call,
         once = std::make_shared<std::once_flag>()](const RowCall& call) {
          std::call_once(*once, [&] { loader->release(*std::move(held)); });
          make(call);
        };
    loader->map(releasing);
    std::vector<std::int64_t> into(32, -1);
    TensorView view;
    view.data = reinterpret_cast<std::byte*>(into.data());
    view.dtype = Dtype::int64;
    view.shape = {32};
    std::optional<FilledBatch> batch = loader->next_into({&view, 1});
    ASSERT_TRUE(batch);
    loader->stream().synchronize();
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(into[i], 10 * batch->ids[i]);
  }
}

// Two threads read each batch on streams of their own, a third one releases it;
// the copies are waited for when all batches are gone.
TEST_F(OpenLoaderTest, GuardsABatchForEveryStreamThatWaited) {
  auto loader = open({.batches = 12});
  std::unique_ptr<Stream> streams[] = {loader->device().make_stream(),
                                       loader->device().make_stream()};
  std::vector<std::vector<float>> got[2], expected;
  auto floats_of = [](const TensorView& view) {
    return std::vector<float>(view.bytes() / sizeof(float));
  };
  auto read = [&](std::size_t reader, Batch& batch) {
    loader->wait_on(batch, *streams[reader]);
    const TensorView& view = batch.tensors()[0].view;
    std::vector<float>& to = got[reader].emplace_back(floats_of(view));
    streams[reader]->copy(reinterpret_cast<std::byte*>(to.data()), view.data,
                          view.bytes());
  };
  while (std::optional<Batch> batch = loader->next()) {
    std::thread first(read, 0, std::ref(*batch));
    std::thread second(read, 1, std::ref(*batch));
    first.join();
    second.join();
    std::thread([&] { loader->release(std::move(*batch)); }).join();
  }
  for (const auto& stream : streams) stream->synchronize();
  auto again = open({.batches = 12});
  while (std::optional<Batch> batch = again->next()) {
    const TensorView& view = batch->tensors()[0].view;
    std::vector<float>& to = expected.emplace_back(floats_of(view));
    again->stream().copy(reinterpret_cast<std::byte*>(to.data()), view.data,
                         view.bytes());
    again->stream().synchronize();
  }
  ASSERT_EQ(expected.size(), 12u);
  for (const auto& read_by_one : got)
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(read_by_one.at(i) == expected[i]) << "batch " << i;
}

TEST_F(OpenLoaderTest, ABatchOutlivesCloseAndTheLoaderIsOfNoMoreUse) {
  auto loader = open();
  std::optional<Batch> batch = loader->next();
  std::vector<SampleId> ids(batch->ids().begin(), batch->ids().end());
  loader->close();
  loader->close();
  EXPECT_TRUE(loader->closed());
  EXPECT_THAT(batch->ids(), testing::ElementsAreArray(ids));
  loader->release(std::move(*batch));
  EXPECT_EQ(parts_of([&] { loader->next(); }).code, "loader.closed");
  EXPECT_EQ(parts_of([&] { loader->state(); }).code, "loader.closed");
}

TEST_F(OpenLoaderTest, TheDataSetStaysForThoseWhoReadItWhileItIsClosed) {
  auto loader = open();
  std::vector<std::string> keys;
  std::shared_ptr<const Dataset> dataset = loader->opened();
  std::thread closes([&] { loader->close(); });
  for (SampleId id = 0; id < dataset->rows(); ++id)
    keys.push_back(dataset->key_of(id).dump());
  closes.join();
  EXPECT_EQ(parts_of([&] { loader->opened(); }).code, "loader.closed");
  EXPECT_EQ(dataset.use_count(), 1);
  EXPECT_EQ(keys.size(), static_cast<std::size_t>(dataset->rows()));
}

TEST_F(OpenLoaderTest, OneThatIsClosedDoesNotStopThoseThatShareItsFlag) {
  auto stop = std::make_shared<std::atomic<bool>>(false);
  std::vector<std::string> reads = {"loader.cache=none"};
  auto first = open({.stop = stop}, reads),
       second = open({.stop = stop}, reads);
  first->next();
  first->close();
  EXPECT_FALSE(*stop);
  EXPECT_EQ(std::ssize(ids_of(*second)), second->steps_per_epoch());
  auto third = open({.batches = -1, .stop = stop}, reads);
  *stop = true;
  EXPECT_EQ(parts_of([&] { ids_of(*third); }).code, "run.stopped");
}

TEST_F(OpenLoaderTest, BatchesKeepTheStreamsThatAnotherLibraryLent) {
  auto loader = open({.batches = 3});
  std::optional<Batch> first = loader->next();
  loader->wait_on(*first, nullptr);  // sim: a stream of its own
  loader->wait_on(*first, nullptr);
  loader->use_stream(nullptr);
  std::optional<Batch> second = loader->next();
  loader->release(std::move(*first));
  loader->close();
  second->wait();
  EXPECT_TRUE(second->arrived());
}

TEST_F(OpenLoaderTest, StopEndsTheOpening) {
  auto stop = std::make_shared<std::atomic<bool>>(true);
  EXPECT_THROW(open({.stop = stop}), Error);
}

}  // namespace
}  // namespace penstock
