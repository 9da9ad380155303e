#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "penstock/loader/loader.h"

namespace penstock {
namespace {

using testing::HasSubstr;

struct Case {
  const char* device;
  const char* cache;
  int workers;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.device << " " << c.cache << " " << c.workers << " workers";
}

constexpr std::int64_t kRows = 1000, kWidth = 64;

class NextIntoTest : public testing::TestWithParam<Case> {
 protected:
  NextIntoTest() {
    device_ = open_device({.kind = GetParam().device, .virtual_time = true});
    auto numbers = std::make_shared<std::vector<float>>(kRows * kWidth);
    std::iota(numbers->begin(), numbers->end(), 0.0F);
    NamedArray array{.name = "x", .owner = numbers};
    array.view = {.data = reinterpret_cast<std::byte*>(numbers->data()),
                  .shape = {kRows, kWidth}};
    set_ = std::make_shared<ArrayDataset>(
        std::vector{array}, ArrayDatasetOptions{.cache = GetParam().cache},
        *device_);
    options_ = {.tail = Tail::exact,
                .batch_size = 300,
                .workers = GetParam().workers,
                .batches = 9};
  }

  TensorView place() {
    return {.data = reinterpret_cast<std::byte*>(mine_.data()),
            .shape = {300, kWidth}};
  }

  std::unique_ptr<Device> device_;
  std::shared_ptr<const Dataset> set_;
  LoaderOptions options_;
  std::vector<float> mine_ = std::vector<float>(300 * kWidth);
};

TEST_P(NextIntoTest, WritesTheSameBatchesToTheSameAddresses) {
  Loader loader(set_, options_, *device_);
  std::unique_ptr<Stream> stream = device_->make_stream();
  std::int64_t batches = 0;
  TensorView to = place();
  while (auto batch = loader.next_into(std::span(&to, 1), *stream)) {
    stream->synchronize();
    EXPECT_EQ(batch->at, (Position{batches / 4, batches % 4}));
    ASSERT_EQ(batch->rows, batches % 4 == 3 ? 100 : 300);
    ASSERT_EQ(std::ssize(batch->ids), batch->rows);
    for (std::size_t row = 0; row < batch->ids.size(); ++row)
      for (std::size_t i : {std::size_t{0}, std::size_t{kWidth - 1}})
        ASSERT_EQ(mine_[row * kWidth + i],
                  static_cast<float>(batch->ids[row] * kWidth) +
                      static_cast<float>(i));
    ++batches;
    EXPECT_EQ(loader.position(), (Position{batches / 4, batches % 4}));
  }
  EXPECT_EQ(batches, 9);
}

TEST_P(NextIntoTest, MayTakeTurnsWithNext) {
  Loader loader(set_, options_, *device_);
  std::unique_ptr<Stream> stream = device_->make_stream();
  TensorView to = place();
  std::vector<SampleId> mixed, plain;
  for (int i = 0; i < 4; ++i) {
    if (i % 2 == 0) {
      auto batch = loader.next_into(std::span(&to, 1), *stream);
      mixed.insert(mixed.end(), batch->ids.begin(), batch->ids.end());
    } else {
      auto batch = loader.next(*stream);
      mixed.insert(mixed.end(), batch->ids().begin(), batch->ids().end());
    }
  }
  stream->synchronize();
  Loader other(set_, options_, *device_);
  for (int i = 0; i < 4; ++i) {
    auto batch = other.next(*stream);
    plain.insert(plain.end(), batch->ids().begin(), batch->ids().end());
  }
  EXPECT_EQ(mixed, plain);
}

TEST_P(NextIntoTest, TensorsThatDoNotFitAreRefusedBeforeABatchIsTaken) {
  Loader loader(set_, options_, *device_);
  std::unique_ptr<Stream> stream = device_->make_stream();
  auto why = [&](std::vector<TensorView> to) {
    try {
      loader.next_into(to, *stream);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_EQ(error.parts().code, "loader.next_into");
      return error.parts().why;
    }
    return std::string("taken");
  };
  TensorView small = place(), narrow = place(), other = place();
  small.shape = {299, kWidth};
  narrow.shape = {300, kWidth - 1};
  other.dtype = Dtype::float64;
  EXPECT_THAT(why({}), HasSubstr("found 0 tensors, expected 1"));
  EXPECT_THAT(why({small}), HasSubstr("[299, 64], expected [300, 64]"));
  EXPECT_THAT(why({narrow}), HasSubstr("[300, 63]"));
  EXPECT_THAT(why({other}), HasSubstr("found float64, expected float32"));
  EXPECT_EQ(loader.position(), (Position{0, 0}));
}

INSTANTIATE_TEST_SUITE_P(All, NextIntoTest,
                         testing::Values(Case{"cpu", "ram", 0},
                                         Case{"cpu", "ram", 2},
                                         Case{"sim", "ram", 0},
                                         Case{"sim", "ram", 8},
                                         Case{"sim", "device", 1}));

}  // namespace
}  // namespace penstock
