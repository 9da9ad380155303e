#include <gtest/gtest.h>

#include <stdexcept>

#include "penstock/dataset/fake/fake_dataset.h"
#include "penstock/loader/troubled_rows.h"

namespace penstock {
namespace {

struct Case {
  const char* device;
  const char* cache;
  int workers;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.device << " " << c.cache << " " << c.workers << " workers";
}

[[noreturn]] void fail() {
  throw Error(ErrorKind::source,
              {.code = "fake.failed", .what = "failed on purpose"});
}

/// What became of a loop over all batches.
struct Ended {
  std::int64_t batches = 0;
  std::optional<Error> error;
};

/// Rows of 4 KiB: workers fill batches of them, since a batch of the fake's
/// rows is filled by the consumer in less time than they take to wake.
std::shared_ptr<const Dataset> wide_rows(Device& device) {
  auto numbers = std::make_shared<std::vector<double>>(1000 * 512);
  NamedArray array{.name = "x", .owner = numbers};
  array.view = {.data = reinterpret_cast<std::byte*>(numbers->data()),
                .dtype = Dtype::float64,
                .shape = {1000, 512}};
  return std::make_shared<ArrayDataset>(std::vector{array},
                                        ArrayDatasetOptions{}, device);
}

class FailureTest : public testing::TestWithParam<Case> {
 protected:
  FailureTest() {
    device_ = open_device({.kind = GetParam().device, .virtual_time = true});
    fake_.options.cache = GetParam().cache;
    if (device_->memory_kind() == MemoryKind::cpu &&
        fake_.options.cache == "ram")
      set_ = wide_rows(*device_);
    else
      set_ = fake_.prepare(*device_);
    options_ = {.batch_size = 40,
                .workers = GetParam().workers,
                .prefetch = 3,
                .batches = 100};
  }

  /// Batches come in order until the end or an error, which then stays.
  Ended loop(TroubledRows::Hooks hooks) {
    auto rows = std::make_shared<TroubledRows>(set_, std::move(hooks));
    Loader loader(rows, options_, *device_);
    std::unique_ptr<Stream> stream = device_->make_stream();
    Ended ended;
    Position expected;
    try {
      while (std::optional<Batch> batch = loader.next(*stream)) {
        EXPECT_EQ(batch->at(), expected);
        expected = next_position(order_of(options_, *rows), expected);
        ++ended.batches;
      }
    } catch (const Error& error) {
      ended.error = error;
      EXPECT_TRUE(loader.ready_within(std::chrono::hours(1)));
      EXPECT_THROW(loader.next(), Error) << "the error stays";
    }
    return ended;
  }

  bool one_thread() const { return GetParam().workers < 2; }

  std::unique_ptr<Device> device_;
  FakeDataset fake_;
  LoaderOptions options_;
  std::shared_ptr<const Dataset> set_;
};

TEST_P(FailureTest, AWorkerThatCannotOpenItsFillerIsHeardInEveryRun) {
  for (int run = 0; run < 40; ++run) {
    Ended ended = loop({.open_filler = [&](int opened) {
      if (opened == (one_thread() ? 1 : 2)) fail();
    }});
    ASSERT_TRUE(ended.error) << "ended after " << ended.batches;
    EXPECT_EQ(ended.error->parts().code, "fake.failed");
    EXPECT_LE(ended.batches, options_.batches);
  }
}

TEST_P(FailureTest, ItIsHeardWhereNoWorkerCanBegin) {
  Ended ended = loop({.open_filler = [](int) { fail(); }});
  ASSERT_TRUE(ended.error);
  EXPECT_EQ(ended.error->parts().code, "fake.failed");
  EXPECT_EQ(ended.batches, 0);
}

TEST_P(FailureTest, APlannerThatFailsIsHeardInItsTurn) {
  for (int run = 0; run < 20; ++run) {
    Ended ended = loop({.select = [](int planned) {
      if (planned == 8) fail();
    }});
    ASSERT_TRUE(ended.error) << "ended after " << ended.batches;
    EXPECT_EQ(ended.error->parts().code, "fake.failed");
    EXPECT_EQ(ended.batches, 7);
  }
}

TEST_P(FailureTest, ABatchThatFailsHalfWayIsHeardInItsTurn) {
  for (int run = 0; run < 20; ++run) {
    Ended ended = loop({.fill = [](Position at) {
      if (at == Position{2, 7}) fail();
    }});
    ASSERT_TRUE(ended.error) << "ended after " << ended.batches;
    EXPECT_EQ(ended.error->parts().code, "fake.failed");
    EXPECT_EQ(ended.batches, 57);
  }
}

// Two errors: that of the batch comes first, wherever the other came from.
TEST_P(FailureTest, TheEarliestErrorIsTheOneThatIsHeard) {
  for (int run = 0; run < 20; ++run) {
    Ended ended = loop({.select =
                            [](int planned) {
                              if (planned == 9)
                                throw std::runtime_error("later");
                            },
                        .fill =
                            [](Position at) {
                              if (at.step == 6) fail();
                            }});
    ASSERT_TRUE(ended.error);
    EXPECT_EQ(ended.error->parts().code, "fake.failed");
    EXPECT_EQ(ended.batches, 6);
  }
}

TEST_P(FailureTest, WhatIsNoExceptionIsAnInternalError) {
  for (const TroubledRows::Hooks& hooks :
       {TroubledRows::Hooks{.open_filler = [](int) { throw 7; }},
        TroubledRows::Hooks{.select = [](int) { throw 7; }},
        TroubledRows::Hooks{.fill = [](Position) { throw 7; }}}) {
    Ended ended = loop(hooks);
    ASSERT_TRUE(ended.error);
    EXPECT_EQ(ended.error->kind(), ErrorKind::internal);
    EXPECT_EQ(ended.error->parts().code, "internal.exception");
    EXPECT_NE(ended.error->parts().why.find("int"), std::string::npos);
    EXPECT_EQ(ended.batches, 0);
  }
}

TEST_P(FailureTest, WithoutAnErrorAllPromisedBatchesCome) {
  Ended ended = loop({});
  EXPECT_FALSE(ended.error);
  EXPECT_EQ(ended.batches, 100);
}

TEST(Promised, NoBatchIsAnInternalError) {
  try {
    promised(std::nullopt);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_EQ(error.parts().code, "internal.early_end");
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FailureTest,
    testing::Values(Case{"cpu", "ram", 0}, Case{"cpu", "ram", 1},
                    Case{"cpu", "ram", 2}, Case{"cpu", "ram", 8},
                    Case{"cpu", "none", 2}, Case{"sim", "ram", 0},
                    Case{"sim", "ram", 1}, Case{"sim", "ram", 2},
                    Case{"sim", "ram", 8}, Case{"sim", "device", 0},
                    Case{"sim", "device", 1}, Case{"sim", "device", 2},
                    Case{"sim", "device", 8}, Case{"sim", "none", 2}));

}  // namespace
}  // namespace penstock
