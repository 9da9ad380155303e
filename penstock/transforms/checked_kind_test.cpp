#include "penstock/transforms/checked_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "penstock/base/error.h"

// Kinds of a user's own that get something wrong.

namespace penstock {
namespace {

using testing::Each;

using testing::HasSubstr;

using Finish = std::function<void(std::span<const StoredRow> rows,
                                  std::span<const TensorPlace> to,
                                  std::vector<RowFault>& rejected)>;
using Encode = std::function<void(std::span<const ValueRow> rows,
                                  const StoredRows& out, Faults& faults)>;

class OwnKind final : public FieldKind, public BoundField {
 public:
  OwnKind(FieldFacts facts, Finish finish, Encode encode)
      : FieldKind(std::move(facts)),
        finish_(std::move(finish)),
        encode_(std::move(encode)) {}

  std::unique_ptr<FieldFinisher> finisher(bool) const override {
    if (!finish_) return nullptr;
    return std::make_unique<Finisher>(finish_);
  }
  std::unique_ptr<FieldParser> parser() const override { return nullptr; }
  std::unique_ptr<FieldEncoder> encoder(const Json&,
                                        const std::string&) const override {
    return std::make_unique<Encoder>(encode_);
  }
  std::shared_ptr<const BoundField> bind(FieldColumns) const override {
    return nullptr;
  }

 private:
  struct Finisher final : FieldFinisher {
    explicit Finisher(Finish by) : finish_(std::move(by)) {}
    void finish(std::span<const StoredRow> rows, const DrawKey&,
                std::span<const TensorPlace> to) override {
      faults_.clear();
      finish_(rows, to, faults_);
    }
    std::span<const RowFault> rejected() const override { return faults_; }
    Finish finish_;
    std::vector<RowFault> faults_;
  };
  struct Encoder final : FieldEncoder {
    explicit Encoder(Encode by) : encode_(std::move(by)) {}
    void encode(std::span<const ValueRow> rows, const StoredRows& out,
                Faults& faults) override {
      encode_(rows, out, faults);
    }
    Encode encode_;
  };

  const Finish finish_;
  const Encode encode_;
};

class CheckedKind : public testing::Test {
 protected:
  CheckedKind() {
    facts_.outputs = {
        {.name = "own", .row_shape = {3}},
        {.name = "own_ids", .dtype = Dtype::uint8, .lengths = Lengths::packed}};
    facts_.stored.element_bytes = 1;
    finish_ = [](auto rows, auto to, auto&) {
      for (std::size_t r = 0; r < rows.size(); ++r) {
        std::memset(to[0].row(r), 1, to[0].bytes);
        std::memset(to[1].row(r), 2,
                    static_cast<std::size_t>(to[1].lengths[r]));
      }
    };
  }

  std::shared_ptr<const OwnKind> kind() const {
    return std::make_shared<OwnKind>(facts_, finish_, encode_);
  }
  Field field() const { return {.name = "own", .kind = kind()}; }
  std::string refused(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal);
      EXPECT_THAT(error.parts().where, HasSubstr("field 'own'"));
      return error.parts().code + ": " + error.parts().why;
    }
    return "accepted";
  }
  /// Three rows, with 10, 0 and 20 elements of the ids.
  std::string finish() {
    lengths_ = {10, 0, 20};
    starts_ = {0, 10, 10};
    tensor_.assign(36, std::byte{9});
    ids_.assign(30, std::byte{9});
    std::vector<StoredRow> rows(3);
    std::vector<TensorPlace> to = {{.data = tensor_.data(), .bytes = 12},
                                   {.data = ids_.data(),
                                    .bytes = 1,
                                    .starts = starts_,
                                    .lengths = lengths_}};
    auto finisher = checked_finisher(field(), true);
    const std::string said = refused([&] { finisher->finish(rows, {}, to); });
    rejected_.assign(finisher->rejected().begin(), finisher->rejected().end());
    return said;
  }
  /// Three rows of two tensors, of 3 and of 8 bytes.
  std::string encode() {
    facts_.stored = {
        .tensors = {{.name = "own", .dtype = Dtype::uint8, .row_shape = {3}},
                    {.name = "own_time", .dtype = Dtype::int64}}};
    tensor_.assign(3 * 24, std::byte{9});
    std::vector<ValueRow> rows(3);
    auto encoder = checked_encoder(field(), *kind(), {});
    Faults faults;
    const std::string said = refused([&] {
      encoder->encode(rows, {.data = tensor_.data(), .stride = 24}, faults);
    });
    rejected_ = faults.rows;
    return said;
  }

  FieldFacts facts_;
  Finish finish_;
  Encode encode_;
  std::vector<std::int64_t> starts_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::byte> tensor_, ids_;
  std::vector<RowFault> rejected_;
};

TEST_F(CheckedKind, WhatIsRightComesWhereItBelongs) {
  EXPECT_EQ(finish(), "accepted");
  EXPECT_THAT(tensor_, Each(std::byte{1}));
  EXPECT_THAT(ids_, Each(std::byte{2}));
  encode_ = [](auto rows, const StoredRows& out, Faults&) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::memset(out.data + r * out.stride, 3, 3);
      std::memset(out.data + r * out.stride + 8, 4, 8);
    }
  };
  EXPECT_EQ(encode(), "accepted");
  for (std::size_t at = 0; at < tensor_.size(); ++at) {
    const std::size_t in_row = at % 24;
    EXPECT_EQ(std::to_integer<int>(tensor_[at]), in_row < 3    ? 3
                                                 : in_row < 8  ? 9
                                                 : in_row < 16 ? 4
                                                               : 9)
        << at;
  }
}

TEST_F(CheckedKind, ARowThatIsTooLongIsNamed) {
  for (std::size_t too_many : {1u, 63u, 2000u}) {
    finish_ = [&](auto rows, auto to, auto&) {
      for (std::size_t r = 0; r < rows.size(); ++r) {
        std::memset(to[0].row(r), 1, to[0].bytes + (r == 2 ? too_many : 0));
        std::memset(to[1].row(r), 2,
                    static_cast<std::size_t>(to[1].lengths[r]));
      }
    };
    EXPECT_THAT(finish(),
                HasSubstr("transform.wrong_bytes: the kind wrote past "
                          "the 12 bytes of row 2"));
  }
}

TEST_F(CheckedKind, ElementsBeyondThePlaceOfASampleAreNamed) {
  finish_ = [](auto rows, auto to, auto&) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::memset(to[0].row(r), 1, to[0].bytes);
      std::memset(to[1].row(r), 2, 21);  // as if all were as long as the last
    }
  };
  EXPECT_THAT(finish(), HasSubstr("past the 10 bytes of row 0"));
}

TEST_F(CheckedKind, WhatLiesBeforeARowIsNotWritten) {
  finish_ = [](auto, auto to, auto&) { *(to[0].row(0) - 1) = std::byte{}; };
  EXPECT_THAT(finish(), HasSubstr("wrote before row 0"));
}

TEST_F(CheckedKind, AnElementThatIsLeftOutIsNamed) {
  finish_ = [](auto rows, auto to, auto&) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::memset(to[0].row(r), 1, to[0].bytes);
      if (r == 2) std::memset(to[1].row(r), 2, 12);  // of 20
    }
  };
  EXPECT_THAT(finish(), HasSubstr("left bytes of row 0 unwritten, of 10"));
}

TEST_F(CheckedKind, ARowThatIsRejectedNeedNotBeWritten) {
  finish_ = [](auto rows, auto to, std::vector<RowFault>& rejected) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (r == 1) continue;
      std::memset(to[0].row(r), 1, to[0].bytes);
      std::memset(to[1].row(r), 2, static_cast<std::size_t>(to[1].lengths[r]));
    }
    rejected = {{.row = 1}};
  };
  EXPECT_EQ(finish(), "accepted");
  ASSERT_EQ(rejected_.size(), 1u);
  EXPECT_EQ(rejected_[0].row, 1);
}

TEST_F(CheckedKind, RowsAreCountedOverAllParts) {
  // Each row is a part of its own.
  const std::size_t large = std::size_t{300} << 10;
  facts_.outputs = {{.name = "own",
                     .dtype = Dtype::uint8,
                     .row_shape = {static_cast<std::int64_t>(large)}}};
  finish_ = [&](auto rows, auto to, std::vector<RowFault>& rejected) {
    ASSERT_EQ(rows.size(), 1u);
    const std::int64_t sample = rows[0].range.sample;
    std::memset(to[0].row(0), static_cast<int>(sample), large);
    if (sample == 2) rejected = {{.row = 0}};
  };
  std::vector<StoredRow> rows(4);
  for (std::size_t r = 0; r < rows.size(); ++r)
    rows[r].range.sample = static_cast<std::int64_t>(r);
  tensor_.resize(4 * large);
  const TensorPlace to{.data = tensor_.data(), .bytes = large};
  auto finisher = checked_finisher(field(), true);
  finisher->finish(rows, {}, {&to, 1});
  ASSERT_EQ(finisher->rejected().size(), 1u);
  EXPECT_EQ(finisher->rejected()[0].row, 2);
  EXPECT_EQ(tensor_[3 * large], std::byte{3});
  EXPECT_EQ(tensor_.back(), std::byte{3});
}

TEST_F(CheckedKind, AStoredRowIsCheckedToo) {
  encode_ = [](auto rows, const StoredRows& out, Faults&) {
    for (std::size_t r = 0; r < rows.size(); ++r)
      std::memset(out.data + r * out.stride, 3, 20);  // of 16
  };
  EXPECT_THAT(encode(), HasSubstr("past the 16 bytes of row 0"));
  encode_ = [](auto rows, const StoredRows& out, Faults&) {
    for (std::size_t r = 0; r < rows.size(); ++r)
      std::memset(out.data + r * out.stride, 3, 8);
  };
  EXPECT_THAT(encode(), HasSubstr("left bytes of row 0 unwritten, of 8"));
  encode_ = [](auto, const StoredRows&, Faults& faults) {
    for (std::int64_t row : {0, 1, 2}) faults.reject({.row = row});
  };
  EXPECT_EQ(encode(), "accepted");
  EXPECT_EQ(rejected_.size(), 3u);
}

TEST_F(CheckedKind, RunsFollowEachOtherToTheLastByte) {
  auto said = [&](std::vector<std::uint32_t> ends, std::int64_t rows,
                  std::int64_t before = 0) {
    Values values;
    values.bytes.append("abcdef", 6);
    values.ends = std::move(ends);
    return refused([&] { check_runs(values, before, rows, "own"); });
  };
  EXPECT_EQ(said({2, 2, 6}, 3), "accepted");
  EXPECT_EQ(said({2, 6}, 1, 1), "accepted");
  EXPECT_THAT(said({2, 6}, 3), HasSubstr("2 runs for 3 rows"));
  EXPECT_THAT(said({4, 2, 6}, 3), HasSubstr("ends before the previous one"));
  EXPECT_THAT(said({2, 9}, 2), HasSubstr("ends at byte 9 of 6"));
  EXPECT_THAT(said({4, 2}, 1, 1), HasSubstr("ends before the previous one"));
  Values equal{.width = 4};
  equal.bytes.append("abcdef", 6);
  EXPECT_THAT(refused([&] { check_runs(equal, 0, 1, "own"); }),
              HasSubstr("not a multiple of their width"));
}

TEST_F(CheckedKind, WhatItDeclaresMustFitTogether) {
  auto said = [&] { return refused([&] { check_declared(field()); }); };
  EXPECT_EQ(said(), "accepted");
  facts_.stored.element_bytes = 0;
  EXPECT_THAT(said(), HasSubstr("transform.wrong_form: output 'own_ids' "
                                "differs in length, but no run is stored"));
  facts_.stored.element_bytes = 1;
  facts_.outputs[1].lengths = Lengths::bins;
  EXPECT_THAT(said(), HasSubstr("whether its rows are bins"));
  facts_.outputs[1].lengths = Lengths::packed;
  finish_ = nullptr;  // stored rows are copied unchanged
  EXPECT_THAT(said(), HasSubstr("2 outputs, expected the 1 that are stored"));
  facts_.stored.tensors = {{.name = "own", .row_shape = {4}}};
  EXPECT_THAT(said(), HasSubstr("has 12 bytes where 16 are stored"));
  facts_.stored.tensors[0].row_shape = {3};
  EXPECT_EQ(said(), "accepted");
  facts_.stored.element_bytes = 4;
  EXPECT_THAT(said(), HasSubstr("has 1 bytes where 4 are stored"));
}

}  // namespace
}  // namespace penstock
