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
#include "penstock/dataset/table/parsed_rows.h"
#include "penstock/transforms/fake/golden_rows.h"
#include "penstock/transforms/fake/runs.h"

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
    block_ =
        golden_block(job_.find("source")->find("key")->string(), all_keys_);
    BoundFields bound = bound_to_float64(fields_);
    std::vector<std::string> columns;
    for (const ColumnRequest& request : requests_of(fields_))
      columns.push_back(request.column);
    blocks_.push_back(BlockParser({.fields = bound, .columns = columns})
                          .parse(all_keys_, block_, notes_));
    for (std::uint32_t row = 0; row < blocks_[0].rows(); ++row)
      rows_.refs.push_back({0, row});
    std::ranges::sort(rows_.refs, [&](RowRef a, RowRef b) {
      return keys().compare(a.row, b.row) < 0;
    });
    statistics_ = fit_fields({bound, notes_, rows_, {}});
    encoder_ =
        std::make_unique<RowEncoder>(bound, fields_, layout_, statistics_);
  }

  const KeyList& keys() const { return blocks_[0].keys; }
  std::int64_t row_of(SampleId id) const { return rows_.ref(id).row; }

  std::vector<std::byte> packed(SampleId id) const {
    std::vector<std::byte> bytes(layout_.row_bytes);
    encoder_->encode(rows_, id, id + 1, bytes.data());
    return bytes;
  }

  /// Of a field, or a tensor of that name.
  bool standardized(const std::string& tensor) const {
    const Json* field = job_.find("fields")->find(tensor);
    const Json* found = field ? field->find("standardize") : nullptr;
    return found != nullptr && *found == Json(true);
  }

  Json jobs_;
  const Json& job_;
  std::vector<Field> fields_;
  RowLayout layout_;
  KeyList all_keys_;
  Block block_;
  ParseNotes notes_;
  std::vector<ParsedBlock> blocks_;
  RowsById rows_{blocks_, {}};
  std::vector<Json> statistics_;
  std::unique_ptr<RowEncoder> encoder_;
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
  ASSERT_EQ(static_cast<std::int64_t>(rows.size()), rows_.count());
  for (std::size_t id = 0; id < rows.size(); ++id) {
    std::vector<std::byte> row = packed(static_cast<SampleId>(id));
    EXPECT_EQ(keys().json(row_of(static_cast<SampleId>(id))),
              *rows[id].find("key"));
    for (const TensorSpec& tensor : layout_.tensors) {
      const bool exact = !standardized(tensor.name);
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
  EXPECT_EQ(notes_.too_short, 1);
  EXPECT_TRUE(notes_.bad.empty());
  std::vector<Json> left_out;
  for (std::int64_t row = 0; row < block_.rows; ++row) {
    bool kept = false;
    for (std::int64_t at = 0; at < rows_.count(); ++at)
      kept = kept || keys().json(at) == all_keys_.json(row);
    if (!kept) left_out.push_back(all_keys_.json(row));
  }
  EXPECT_EQ(Json(left_out), *job_.find("left_out"));
}

TEST_P(Golden, TheFirstBatchHasTheSameDigest) {
  const Json* batch = job_.find("first_batch_unshuffled");
  const bool plain = std::ranges::none_of(
      fields_, [&](const Field& field) { return standardized(field.name); });
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
