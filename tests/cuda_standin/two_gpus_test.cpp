#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "penstock/base/error.h"
#include "penstock/dataset/fake/words_dataset.h"
#include "penstock/loader/seen_batches.h"
#include "tests/cuda_standin/standin.h"

// The real code of the device `cuda` on two GPUs that are not there.

namespace penstock {
namespace {

using cuda_standin::has_context;
using cuda_standin::Machine;
using cuda_standin::start;
using cuda_standin::used;
using testing::AllOf;
using testing::HasSubstr;

std::unique_ptr<Device> gpu(std::optional<int> number) {
  return open_device({.kind = "cuda", .number = number});
}

template <class Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::internal, {});
}

/// On a thread of its own, whose current device is the first.
template <class Act>
void on_new_thread(Act act) {
  std::thread(act).join();
}

class TwoGpus : public testing::Test {
 protected:
  TwoGpus() { start({}); }
  ~TwoGpus() override {
    ::unsetenv("LOCAL_RANK");
    start({});
  }
};

TEST_F(TwoGpus, TheOneThatIsNamedIsOpened) {
  for (int number : {0, 1}) {
    auto device = gpu(number);
    EXPECT_EQ(device->number(), number);
    EXPECT_THAT(device->name(), HasSubstr("cuda:" + std::to_string(number)));
    Buffer memory = device->allocate(1000);
    EXPECT_GE(used(number), 1000u);
  }
  EXPECT_EQ(parse_device_spec(Json("cuda:1"), "device").number, 1);
  EXPECT_EQ(parse_device_spec(Json("gpu:1"), "device").kind, "cuda");
  EXPECT_THROW(parse_device_spec(Json("cuda:x"), "device"), Error);
  EXPECT_THROW(parse_device_spec(Json("sim:1"), "device"), Error);
}

TEST_F(TwoGpus, WithoutANameItIsTheCurrentOneOrThatOfTheRank) {
  EXPECT_EQ(gpu({})->number(), 0);
  ::setenv("LOCAL_RANK", "1", 1);
  EXPECT_EQ(gpu({})->number(), 1);
  EXPECT_EQ(open_device({})->number(), 1) << "auto";
  ::setenv("LOCAL_RANK", "0", 1);
  cudaSetDevice(1);  // as torch.cuda.set_device() does
  EXPECT_EQ(gpu({})->number(), 1);
  start({.devices = 1});
  ::setenv("LOCAL_RANK", "1", 1);
  EXPECT_EQ(gpu({})->number(), 0) << "each rank sees one";
}

TEST_F(TwoGpus, ANumberThatIsNotThereIsNamed) {
  Error error = error_of([] { gpu(2); });
  EXPECT_EQ(error.parts().code, "device.no_such_gpu");
  EXPECT_THAT(error.what(), AllOf(HasSubstr("cuda:2"), HasSubstr("cuda:1")));
  for (const char* rank : {"5", "1x"}) {
    ::setenv("LOCAL_RANK", rank, 1);
    EXPECT_EQ(error_of([] { gpu({}); }).parts().code, "device.no_such_gpu");
    EXPECT_EQ(error_of([] { open_device({}); }).parts().code,
              "device.no_such_gpu")
        << "auto does not take the cpu instead";
  }
}

TEST_F(TwoGpus, AnOldDriverIsNamedWithBothVersions) {
  start({.driver = 11040});
  Error error = error_of([] { gpu({}); });
  EXPECT_EQ(error.parts().code, "device.old_driver");
  EXPECT_THAT(error.what(), AllOf(HasSubstr("11.4"), HasSubstr("12.8")));
  start({.devices = 0});
  EXPECT_EQ(error_of([] { gpu({}); }).parts().code, "device.no_gpu");
  start({.major = 7});
  EXPECT_EQ(error_of([] { gpu({}); }).parts().code, "device.too_old");
}

TEST_F(TwoGpus, DefaultStreamsAreThoseOfTheDevice) {
  std::unique_ptr<Device> second;
  on_new_thread([&] { second = gpu(1); });
  for (void* handle :
       {static_cast<void*>(nullptr), static_cast<void*>(cudaStreamLegacy),
        static_cast<void*>(cudaStreamPerThread)})
    on_new_thread([&] {
      std::unique_ptr<Stream> own = second->make_stream();
      Buffer from = second->allocate_pinned(64), to = second->allocate(64);
      Buffer out = second->allocate(8);
      std::memset(from.data(), 3, 64);
      auto borrowed = second->borrow_stream(handle);
      cudaSetDevice(0);  // another library uses the first meanwhile
      borrowed->copy(to.data(), from.data(), 64);
      GatherField field{to.data(), 8, 8, out.data()};
      std::int64_t row = 5;
      borrowed->run(Gather{{&field, 1}, {&row, 1}});
      Event done = borrowed->record();
      own->wait(done);
      own->copy(from.data(), out.data(), 8);
      own->synchronize();
      EXPECT_EQ(from.data()[7], std::byte{3});
      int current = -1;
      cudaGetDevice(&current);
      EXPECT_EQ(current, 0) << "as the thread had it";
    });
}

class CudaLoader : public TwoGpus {
 protected:
  CudaLoader() {
    words_.add_number();
    words_.options.cache = "auto";
    words_.options.store_dir = testing::TempDir();
    options_ = {.tail = Tail::pad, .batch_size = 32, .workers = 2};
    options_.batches = 15;
    row_bytes_ = layout_of(words_.options.fields).row_bytes;
  }

  std::vector<SeenBatch> run(Device& device) const {
    return seen_batches(words_.prepare(device), options_, device);
  }
  std::vector<SeenBatch> expected() const {
    WordsDataset words = words_;
    words.options.cache = "ram";
    words.options.budgets = {};
    auto cpu = open_device({.kind = "cpu"});
    return seen_batches(words.prepare(*cpu), options_, *cpu);
  }

  WordsDataset words_;
  LoaderOptions options_;
  std::size_t row_bytes_ = 0;
};

TEST_F(CudaLoader, ABatchHasTheBytesOfTheCpuInEveryTier) {
  const std::vector<SeenBatch> right = expected();
  for (const char* cache : {"device", "pinned", "ram", "none", "auto"})
    for (int workers : {0, 1, 2, 8})
      for (int number : {0, 1}) {
        words_.options.cache = cache;
        options_.workers = workers;
        auto device = gpu(number);
        EXPECT_EQ(run(*device), right) << cache << " " << workers;
      }
  EXPECT_EQ(used(0) + used(1), 0u);
}

TEST_F(CudaLoader, AndInMixturesOfThem) {
  const std::vector<SeenBatch> right = expected();
  for (std::size_t there : {40u, 100u})
    for (std::size_t in_pinned : {0u, 70u})
      for (std::size_t in_ram : {0u, 50u}) {
        words_.options.budgets = {.device = there * row_bytes_,
                                  .pinned = in_pinned * row_bytes_,
                                  .ram = in_ram * row_bytes_,
                                  .disk = 0};
        EXPECT_EQ(run(*gpu(1)), right) << there << " " << in_pinned;
      }
}

TEST_F(CudaLoader, NothingAppearsOnTheFirstGpu) {
  on_new_thread([&] {
    auto device = gpu(1);
    for (const char* cache : {"device", "pinned", "ram"}) {
      words_.options.cache = cache;
      run(*device);
      device->memory();
      device->borrow_stream(nullptr)->record().wait();
    }
  });
  EXPECT_TRUE(has_context(1));
  EXPECT_FALSE(has_context(0));
}

TEST_F(CudaLoader, TwoGpusWorkAtOnce) {
  const std::vector<SeenBatch> right = expected();
  std::vector<std::jthread> threads;
  for (int number : {0, 1})
    threads.emplace_back([&, number] {
      auto device = gpu(number);
      for (int round = 0; round < 3; ++round) EXPECT_EQ(run(*device), right);
    });
}

TEST_F(CudaLoader, ABatchIsNotTakenInsideACapture) {
  auto device = gpu(0);
  Loader loader(words_.prepare(*device), options_, *device);
  std::unique_ptr<Stream> stream = device->make_stream();
  auto handle = static_cast<cudaStream_t>(stream->handle());
  std::optional<Batch> before = loader.next(*stream);
  ASSERT_EQ(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal),
            cudaSuccess);
  Position at = loader.position();
  EXPECT_EQ(error_of([&] { loader.next(*stream); }).parts().code,
            "loader.capturing");
  std::vector<TensorView> to;
  Buffer memory = device->allocate(32 * 8);
  for (const NamedTensor& tensor : before->tensors()) {
    to.push_back(tensor.view);
    to.back().data = memory.data();
  }
  EXPECT_EQ(error_of([&] { loader.next_into(to, *stream); }).parts().code,
            "loader.capturing");
  EXPECT_EQ(loader.position(), at) << "nothing is lost";
  before.reset();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(handle, &graph), cudaSuccess)
      << "neither spoils it";
  cudaGraphDestroy(graph);
  for (int step = 1; step < 15; ++step) EXPECT_TRUE(loader.next(*stream));
}

TEST_F(CudaLoader, RunningOutOfMemoryAtAnyCallLeavesNothingBehind) {
  words_.options.cache = "device";
  for (const char* call : {"cudaMalloc", "cudaHostAlloc"})
    for (int k = 1; k < 40; ++k) {
      start({});
      auto device = gpu(0);
      cuda_standin::fail(call, k, cudaErrorMemoryAllocation);
      try {
        EXPECT_EQ(run(*device).size(), 15u);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::out_of_memory) << error.what();
        EXPECT_THAT(error.what(), HasSubstr("cuda:0"));
      }
      EXPECT_EQ(used(0), 0u) << call << " " << k;
    }
}

}  // namespace
}  // namespace penstock
