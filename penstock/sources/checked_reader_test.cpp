#include "penstock/sources/checked_reader.h"

#include <gmock/gmock.h>

#include <limits>

#include "penstock/sources/fake/fake_store.h"
#include "penstock/sources/test_reading.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

const std::vector<ColumnRequest> kAll = {{"value"}, {"samples"}, {"packed"}};
enum : std::size_t { kValue, kSamples, kPacked };

/// The error of reading rows 3, 4 and 5 of a store that spoils its blocks so;
/// a scan must end by the same one.
Error refusal(const std::function<void(Block&)>& spoil) {
  auto store = counting_store(20, kAll, {.spoil = spoil});
  std::vector<std::int64_t> asked = {3, 4, 5};
  Error of_read = error_of([&] {
    Block block;
    open_checked_reader(*store)->read(asked, block);
  });
  Error of_scan = error_of([&] {
    open_checked_reader(*store)->scan(store->partitions(1)[0], {},
                                      [](KeyList&, Block&) { return true; });
  });
  EXPECT_EQ(of_read.kind(), ErrorKind::source);
  EXPECT_EQ(of_scan.parts().code, of_read.parts().code);
  EXPECT_THAT(of_read.parts().where, HasSubstr("a fake store"));
  return of_read;
}

/// Sets one offset of a column.
void set_offset(Column& column, std::int64_t row, std::int64_t offset) {
  column.offsets.mutable_data<std::int64_t>()[row] = offset;
}

TEST(CheckedReader, RefusesFewerRowsThanWereRequested) {
  Error error = refusal([](Block& block) {
    --block.rows;
    for (Column& column : block.columns) --column.length;
  });
  EXPECT_EQ(error.parts().code, "source.wrong_rows");
  EXPECT_THAT(error.parts().why, HasSubstr("2 rows for 3"));
}

TEST(CheckedReader, RefusesAColumnOfFewerRows) {
  Error error = refusal([](Block& block) { --block.columns[kValue].length; });
  EXPECT_EQ(error.parts().code, "source.wrong_rows");
  EXPECT_THAT(error.parts().where, HasSubstr("column 1"));
}

TEST(CheckedReader, RefusesAnotherNumberOfColumns) {
  Error error = refusal([](Block& block) { block.columns.pop_back(); });
  EXPECT_EQ(error.parts().code, "source.wrong_columns");
  EXPECT_THAT(error.parts().why, HasSubstr("2 columns, but 3"));
}

TEST(CheckedReader, RefusesAColumnOfAnotherType) {
  Error error = refusal([](Block& block) {
    block.columns[kValue].type = ColumnType::number(Dtype::float32);
  });
  EXPECT_EQ(error.parts().code, "source.wrong_columns");
  EXPECT_THAT(error.parts().why, HasSubstr("float32, but was float64"));
}

TEST(CheckedReader, RefusesNegativeLengths) {
  Error error = refusal([](Block& block) {
    Column& samples = block.columns[kSamples];
    set_offset(samples, samples.length, samples.offset(samples.length - 1) - 1);
  });
  EXPECT_EQ(error.parts().code, "source.bad_offsets");
  EXPECT_THAT(error.parts().where, HasSubstr("column 2, row 2"));
}

TEST(CheckedReader, RefusesOffsetsThatRunBackwards) {
  Error error = refusal([](Block& block) {
    set_offset(block.columns[kPacked], 1,
               block.columns[kPacked].offset(block.rows) + 100);
  });
  EXPECT_EQ(error.parts().code, "source.bad_offsets");
  EXPECT_EQ(
      refusal([](Block& block) { set_offset(block.columns[kSamples], 0, -4); })
          .parts()
          .code,
      "source.bad_offsets");
}

TEST(CheckedReader, RefusesOffsetsBeyondTheValues) {
  Error error = refusal([](Block& block) {
    set_offset(block.columns[kSamples], block.rows,
               block.columns[kSamples].children[0].length + 1);
  });
  EXPECT_EQ(error.parts().code, "source.bad_offsets");
}

TEST(CheckedReader, RefusesBuffersThatAreTooShort) {
  for (std::size_t c : {kValue, kSamples, kPacked}) {
    Error error = refusal([c](Block& block) {
      Column& column = block.columns[c];
      (c == kValue ? column.values : column.offsets).resize(8);
    });
    EXPECT_EQ(error.parts().code, "source.short_column") << c;
  }
  EXPECT_EQ(
      refusal([](Block& block) { block.columns[kSamples].children.clear(); })
          .parts()
          .code,
      "source.short_column");
  EXPECT_EQ(refusal([](Block& block) {
              block.columns[kSamples].children[0].values.resize(1);
            })
                .parts()
                .code,
            "source.short_column");
}

TEST(CheckedReader, RefusesRowsOf2To31Elements) {
  // Elements without a value take no memory.
  for (std::int64_t elements :
       {(std::int64_t{1} << 31) - 1, std::int64_t{1} << 31}) {
    Column list{.type = ColumnType::list, .length = 1};
    list.children.push_back({.type = ColumnType::null, .length = elements});
    list.offsets.append_value(std::int64_t{0});
    list.offsets.append_value(elements);
    EXPECT_EQ(fault_of(list, 1).code,
              elements < std::int64_t{1} << 31 ? "" : "source.too_long");
  }
}

TEST(CheckedReader, RefusesALengthThatChanged) {
  Error error = refusal([](Block& block) {
    Column& packed = block.columns[kPacked];
    packed.values.append("y", 1);
    set_offset(packed, block.rows, packed.offset(block.rows) + 1);
  });
  EXPECT_EQ(error.parts().code, "source.length_changed");
  EXPECT_THAT(error.parts().where, HasSubstr("position 5"));
  EXPECT_THAT(error.parts().why, HasSubstr("6 elements, but 5"));
}

TEST(CheckedReader, RefusesAProblemOfARowThatIsNotThere) {
  Error error = refusal([](Block& block) {
    block.problems.push_back({block.rows, 0, "holds nothing"});
  });
  EXPECT_EQ(error.parts().code, "source.wrong_rows");
}

TEST(CheckedReader, RefusesPositionsOutsideTheSource) {
  auto store = counting_store(20, kAll);
  for (const std::vector<std::int64_t>& asked :
       {std::vector<std::int64_t>{-1}, {0, 20}}) {
    Error error = error_of([&] {
      Block block;
      open_checked_reader(*store)->read(asked, block);
    });
    EXPECT_EQ(error.parts().code, "source.row_gone");
  }
  EXPECT_EQ(store->counts().reads, 0);
}

TEST(CheckedReader, RefusesAnIndexOutsideItsDictionary) {
  Column column{.type = {ColumnKind::dictionary, Dtype::int8}, .length = 2};
  column.children.push_back({.type = ColumnType::null, .length = 3});
  column.values.append("\x01\x02", 2);
  EXPECT_EQ(fault_of(column, 2).code, "");
  column.children[0].length = 2;
  EXPECT_EQ(fault_of(column, 2).code, "source.bad_offsets");
  EXPECT_EQ(fault_of(column, 2).row, 1);
}

TEST(CheckedReader, RefusesNumbersThatWouldOverflow) {
  Column column{.type = ColumnType::null,
                .first = std::numeric_limits<std::int64_t>::max(),
                .length = 2};
  EXPECT_EQ(fault_of(column, 2).code, "source.wrong_rows");
  column = {.type = ColumnType::null, .length = -1};
  EXPECT_EQ(fault_of(column, -1).code, "source.wrong_rows");
}

TEST(CheckedReader, TakesBorrowedRowsFromTheMiddle) {
  Column column{.type = ColumnType::text, .first = 1, .length = 2};
  column.wide = false;
  for (std::int32_t offset : {0, 3, 3, 5}) column.offsets.append_value(offset);
  column.values.append("abcde", 5);
  EXPECT_EQ(fault_of(column, 2).code, "");
  column.first = 2;
  EXPECT_EQ(fault_of(column, 2).code, "source.short_column");
}

}  // namespace
}  // namespace penstock
