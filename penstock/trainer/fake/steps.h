#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "penstock/loader/loader.h"
#include "penstock/session/session.h"

namespace penstock {

// What the tests of every model do with it.

/// Takes steps [begin, end) of the run's order; returns their losses.
inline std::vector<double> take_steps(Stepper& stepper, LoaderOptions options,
                                      std::shared_ptr<const Dataset> rows,
                                      Device& device, std::int64_t begin,
                                      std::int64_t end) {
  std::int64_t each = steps_per_epoch(order_of(options, *rows));
  options.start = {begin / each, begin % each};
  options.batches = end - begin;
  Loader loader(std::move(rows), options, device);
  std::unique_ptr<Stream> stream = device.make_stream();
  while (std::optional<Batch> batch = loader.next(*stream))
    stepper.step(std::make_shared<Batch>(std::move(*batch)), *stream, begin++);
  return stepper.losses(true);
}

/// The metrics of all rows of a side.
inline Json validate_rows(Stepper& stepper, LoaderOptions options,
                          std::shared_ptr<const Dataset> rows, Device& device) {
  options.batches = steps_per_epoch(order_of(options, *rows));
  Loader loader(std::move(rows), options, device);
  std::unique_ptr<Stream> stream = device.make_stream();
  while (std::optional<Batch> batch = loader.next(*stream))
    stepper.validate(std::make_shared<Batch>(std::move(*batch)), *stream);
  return stepper.validated().metrics;
}

inline void expect_same_bits(const ModelState& one, const ModelState& other) {
  EXPECT_EQ(one.json, other.json);
  ASSERT_EQ(one.tensors.size(), other.tensors.size());
  for (std::size_t i = 0; i < one.tensors.size(); ++i) {
    const TensorView& a = one.tensors[i].view;
    const TensorView& b = other.tensors[i].view;
    ASSERT_EQ(one.tensors[i].name, other.tensors[i].name);
    ASSERT_EQ(a.shape, b.shape);
    EXPECT_EQ(std::memcmp(a.data, b.data, a.bytes()), 0) << one.tensors[i].name;
  }
}

}  // namespace penstock
