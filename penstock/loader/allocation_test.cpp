// A batch of kept rows takes no memory, once the loader is warm.
#ifndef PENSTOCK_SANITIZED_THREAD
#include <gtest/gtest.h>

#include "penstock/base/fake/test_memory.h"
#include "penstock/loader/loader.h"

namespace penstock {
namespace {

constexpr std::int64_t kRows = 4096;
constexpr int kBatches = 64;

NamedArray zeros(std::string name, Dtype dtype, Shape shape) {
  TensorView view{.dtype = dtype, .shape = std::move(shape)};
  auto bytes = std::make_shared<std::vector<std::byte>>(view.bytes());
  view.data = bytes->data();
  return {std::move(name), std::move(view), std::move(bytes)};
}

/// How often memory is taken, on all threads, while batches of `rows` come,
/// the seams between epochs within.
std::int64_t taken_for(std::int64_t rows, int workers) {
  std::unique_ptr<Device> device = open_device({.kind = "cpu"});
  std::vector<NamedArray> arrays = {zeros("x", Dtype::float32, {kRows, 16, 16}),
                                    zeros("y", Dtype::int64, {kRows})};
  Loader loader(std::make_shared<ArrayDataset>(std::move(arrays),
                                               ArrayDatasetOptions(), *device),
                {.batch_size = rows, .workers = workers}, *device);
  for (int i = 0; i < kBatches; ++i) loader.next();
  const std::int64_t before = allocations;
  for (int i = 0; i < kBatches; ++i) loader.next();
  return allocations - before;
}

TEST(LoaderAllocations, ABatchThatTheLoopFillsTakesNone) {
  for (int workers : {0, 1, 2, 8}) EXPECT_EQ(taken_for(64, workers), 0);
  EXPECT_EQ(taken_for(1024, 0), 0);
}

// The line of items takes memory for a dozen of them at once.
TEST(LoaderAllocations, ABatchFromAnotherThreadTakesNoneOfItsOwn) {
  for (int workers : {1, 2, 8}) EXPECT_LT(taken_for(1024, workers), kBatches);
}

}  // namespace
}  // namespace penstock
#endif
