// The rows of tests/data/j1 against tensors that numpy made from the same
// rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

#include "penstock/base/hash.h"
#include "penstock/transforms/detail/golden_rows.h"
#include "penstock/transforms/transforms.h"

namespace penstock {
namespace {

Json golden_jobs() {
  std::ifstream file(PENSTOCK_TEST_DATA "/j1/golden.json");
  std::stringstream text;
  text << file.rdbuf();
  return Json::parse(text.str(), "golden.json");
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  Golden() : jobs_(golden_jobs()), job_(*jobs_.find(GetParam())) {
    fields_ = parse_fields(*job_.find("fields"), "fields");
    layout_ = layout_of(fields_);
    block_ = golden_block(job_.find("source")->find("key")->string());
    Preparer preparer({.fields = fields_});
    raw_ = preparer.prepare(block_, seen_);
    order_.resize(static_cast<std::size_t>(raw_.rows()));
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::sort(order_, [&](std::int64_t a, std::int64_t b) {
      return raw_.keys.compare(a, b) < 0;
    });
    fitted_ = fit(fields_, seen_, {},
                  {.count = raw_.rows(),
                   .row = [this](SampleId id) { return raw_.row(row_of(id)); },
                   .is_train = [](SampleId) { return true; }});
  }

  std::int64_t row_of(SampleId id) const {
    return order_[static_cast<std::size_t>(id)];
  }

  std::vector<std::byte> packed(SampleId id) const {
    std::vector<std::byte> bytes(layout_.row_bytes);
    pack_row(fields_, layout_, fitted_, raw_.row(row_of(id)), bytes.data(),
             [&] { return raw_.keys.shown(row_of(id)); });
    return bytes;
  }

  const Field* field_named(const std::string& name) const {
    auto found = std::ranges::find(fields_, name, &Field::name);
    return found == fields_.end() ? nullptr : &*found;
  }

  Json jobs_;
  const Json& job_;
  std::vector<Field> fields_;
  RowLayout layout_;
  Block block_;
  Seen seen_;
  RawBlock raw_;
  std::vector<std::int64_t> order_;
  Fitted fitted_;
};

void flatten(const Json& json, std::vector<double>& numbers) {
  if (!json.is_array()) return numbers.push_back(json.number());
  for (const Json& item : json.array()) flatten(item, numbers);
}

double number_at(const TensorSpec& tensor, const std::byte* row,
                 std::size_t i) {
  if (tensor.dtype == Dtype::float64) {
    double value;
    std::memcpy(&value, row + tensor.offset + 8 * i, 8);
    return value;
  }
  float value;
  std::memcpy(&value, row + tensor.offset + 4 * i, 4);
  return static_cast<double>(value);
}

TEST_P(Golden, EveryTensorOfEveryRowIsAsWritten) {
  const Json::Array& rows = job_.find("rows")->array();
  ASSERT_EQ(static_cast<std::int64_t>(rows.size()), raw_.rows());
  for (std::size_t id = 0; id < rows.size(); ++id) {
    std::vector<std::byte> row = packed(static_cast<SampleId>(id));
    EXPECT_EQ(raw_.keys.json(order_[id]), *rows[id].find("key"));
    for (const TensorSpec& tensor : layout_.tensors) {
      const Field* field = field_named(tensor.name);
      bool exact = field == nullptr || !field->standardize;
      std::vector<double> expected;
      flatten(*rows[id].find(tensor.name), expected);
      ASSERT_EQ(static_cast<std::int64_t>(expected.size()),
                elements_of(tensor.row_shape));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        double found = number_at(tensor, row.data(), i);
        // float32 is printed with 9 digits, which name it.
        double want = tensor.dtype == Dtype::float32
                          ? static_cast<double>(static_cast<float>(expected[i]))
                          : expected[i];
        double off = exact ? 0 : 1e-7 + 2e-6 * std::abs(want);
        EXPECT_NEAR(found, want, off)
            << tensor.name << "[" << i << "] of id " << id;
      }
    }
  }
}

TEST_P(Golden, LeavesOutTheRowWithAnEmptyList) {
  EXPECT_EQ(seen_.too_short, 1);
  EXPECT_TRUE(seen_.bad.empty());
  std::vector<Json> left_out;
  for (std::int64_t row = 0; row < block_.rows; ++row) {
    KeyList key(block_.columns[0].type);
    key.append(block_.columns[0], row);
    bool kept = false;
    for (std::int64_t at = 0; at < raw_.rows(); ++at)
      kept = kept || raw_.keys.json(at) == key.json(0);
    if (!kept) left_out.push_back(key.json(0));
  }
  EXPECT_EQ(Json(left_out), *job_.find("left_out"));
}

TEST_P(Golden, TheFirstBatchHasTheSameDigest) {
  const Json* batch = job_.find("first_batch_unshuffled");
  bool plain = std::ranges::none_of(fields_, &Field::standardize);
  ASSERT_EQ(batch != nullptr, plain);
  if (batch == nullptr) return;
  std::int64_t size = batch->find("batch_size")->integer();
  Sha256 order, bytes;
  for (std::int64_t id = 0; id < size; ++id)
    order.add(std::as_bytes(std::span(&id, 1)));
  for (const TensorSpec& tensor : layout_.tensors)
    for (std::int64_t id = 0; id < size; ++id) {
      std::vector<std::byte> row = packed(id);
      bytes.add(std::span(row).subspan(tensor.offset, tensor.bytes));
    }
  EXPECT_EQ(order.hex(), batch->find("order_digest")->string());
  EXPECT_EQ(bytes.hex(), batch->find("bytes_digest")->string());
}

INSTANTIATE_TEST_SUITE_P(Jobs, Golden,
                         testing::Values("first_7_standardized",
                                         "strongest_5_standardized",
                                         "strongest_3_plain", "text_key_plain"),
                         [](const auto& job) { return job.param; });

}  // namespace
}  // namespace penstock
