#include "penstock/dataset/table/block_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "penstock/base/error.h"
#include "penstock/transforms/fake/runs.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

using Text = std::optional<std::string>;

TEST(Runs, BeyondFourGibAreRefused) {
  static const std::byte byte{};
  Values values;
  values.ends = {7};
  // Never looked at.
  values.bytes = Bytes::borrow({&byte, (std::size_t{1} << 32) + 7},
                               std::make_shared<int>());
  try {
    check_runs(values, 0, 1, "x");
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "fields.too_many_bytes");
    EXPECT_THAT(error.what(), HasSubstr("4294967303 bytes"));
  }
}

// Blocks with an integer key (10, 11, ...) and the columns that fields need.
class Parse : public testing::Test {
 protected:
  void job(const std::string& section) {
    fields_ = parse_fields(Json::parse(section, "test"), "fields");
    options_.fields = bound_to_float64(fields_);
    options_.columns.clear();
    for (const ColumnRequest& request : requests_of(fields_))
      options_.columns.push_back(request.column);
  }
  // One json_set field `r` over column `list`, keys a and b.
  void set(const std::string& members = R"("max": 3)") {
    job(R"({"r": {"json_set": {"column": "list", "keys": ["a", "b"], )" +
        members + "}}}");
  }
  struct Rows : Block {
    KeyList keys;
  };
  static KeyList keys(std::int64_t count, std::int64_t first = 10) {
    KeyList keys;
    for (std::int64_t i = 0; i < count; ++i) keys.append_integer(first + i);
    return keys;
  }
  static Column texts(const std::vector<Text>& rows) {
    Column column{.type = ColumnType::json};
    for (const Text& row : rows)
      row ? column.append_text(*row) : column.append_null();
    return column;
  }
  static Column numbers(const std::vector<double>& rows) {
    Column column{.type = ColumnType::float64};
    for (double row : rows) column.append_float64(row);
    return column;
  }
  template <class... More>
  Rows block(Column first, More... more) {
    Rows block;
    block.rows = first.length;
    block.keys = keys(first.length);
    block.columns.push_back(std::move(first));
    (block.columns.push_back(std::move(more)), ...);
    return block;
  }
  void run(const Rows& rows) {
    BlockParser parser(options_);
    parsed_ = parser.parse(rows.keys, rows, notes_);
  }
  void run_lists(const std::vector<Text>& rows) { run(block(texts(rows))); }

  std::vector<double> row(std::int64_t at) const {
    std::vector<double> run;
    for (std::size_t f = 0; f < parsed_.fields.size(); ++f) {
      std::unique_ptr<FieldParser> parser = options_.fields[f]->parser();
      ValueRow row = parser->canonical(parsed_.fields[f]).row(at);
      std::vector<double> part(row.size() / sizeof(double));
      std::memcpy(part.data(), row.data(), row.size());
      run.insert(run.end(), part.begin(), part.end());
    }
    return run;
  }
  const std::vector<KeyTypes::Key>& types(std::size_t field = 0) const {
    return key_types_in(*notes_.fields.at(field));
  }
  // What is wrong with the only row.
  BadRow the_bad_row() const {
    EXPECT_EQ(notes_.bad.size(), 1u);
    return notes_.bad.empty() ? BadRow{} : notes_.bad[0];
  }
  void expect_bad(const Text& list, const std::string& why,
                  std::int64_t byte = -1) {
    notes_ = ParseNotes();
    run_lists({list});
    BadRow bad = the_bad_row();
    EXPECT_EQ(parsed_.rows(), 0);
    EXPECT_THAT(bad.why, HasSubstr(why));
    EXPECT_EQ(bad.byte, byte);
    EXPECT_EQ(bad.column, "list");
    EXPECT_EQ(bad.shown_key, "10");
    EXPECT_EQ(bad.key, Json(10));
  }

  std::vector<Field> fields_;
  BlockParser::Options options_;
  ParseNotes notes_;
  ParsedBlock parsed_;
};

TEST_F(Parse, EveryElementOfTheListIsPresent) {
  set();
  run_lists({R"([{"a": 1, "b": 2}, {}, {"b": null, "present": false}])"});
  EXPECT_THAT(row(0), ElementsAre(3, 1, 2, IsNan(), IsNan(), IsNan(), IsNan()));
}

TEST_F(Parse, MissingValuesAreTheOneQuietNan) {
  set();
  run_lists({R"([{"a": null}])"});
  for (double value : {row(0)[1], row(0)[2]})
    EXPECT_EQ(
        std::bit_cast<std::uint64_t>(value),
        std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN()));
}

TEST_F(Parse, BooleansAreZeroAndOne) {
  set();
  run_lists({R"([{"a": true, "b": false}])"});
  EXPECT_THAT(row(0), ElementsAre(1, 1, 0));
}

TEST_F(Parse, NegativeZeroBecomesZero) {
  job(R"({"r": {"json_set": {"column": "list", "keys": ["a"], "max": 1}},
          "t": {"columns": ["x"]}})");
  run(block(texts({R"([{"a": -0.0}])"}), numbers({-0.0})));
  ASSERT_THAT(row(0), ElementsAre(1, 0, 0));
  EXPECT_FALSE(std::signbit(row(0)[1]));
  EXPECT_FALSE(std::signbit(row(0)[2]));
}

TEST_F(Parse, ExtraKeysAreIgnoredAndAKeyGivenTwiceTakesTheLast) {
  set();
  run_lists({R"([{"x": {"a": [9]}, "a": 1, "a": 2, "\u0062": 3}])"});
  EXPECT_THAT(row(0), ElementsAre(1, 2, 3));
}

TEST_F(Parse, OverflowFirstKeepsTheFirstInListOrder) {
  set(R"("max": 2, "overflow": "first")");
  run_lists({R"([{"a": 1}, {"a": 3}, {"a": 2}])"});
  EXPECT_THAT(row(0), ElementsAre(2, 1, IsNan(), 3, IsNan()));
}

TEST_F(Parse, OverflowStrongestSortsTiesInListOrderAndMissingLast) {
  set(R"("max": 4, "overflow": "strongest", "sort_by": "a")");
  run_lists({R"([{"b": 1}, {"a": 5, "b": 2}, {"a": 7, "b": 3},
                 {"a": 5, "b": 4}, {"a": null, "b": 5}])"});
  EXPECT_THAT(row(0), ElementsAre(4, 7, 3, 5, 2, 5, 4, IsNan(), 1));
}

TEST_F(Parse, OverflowStrongestSortsShortListsByAKeyThatIsNoTensor) {
  set(R"("max": 4, "overflow": "strongest", "sort_by": "power")");
  run_lists({R"([{"a": 1, "b": 1, "power": -3}, {"a": 2, "b": 2, "power": 8}])",
             R"([{"a": 1, "power": "high"}])"});
  EXPECT_THAT(row(0), ElementsAre(2, 2, 2, 1, 1));
  EXPECT_THAT(the_bad_row().why, HasSubstr("[0].power holds a text"));
}

TEST_F(Parse, OverflowStrongestIsStableForLongLists) {
  set(R"("max": 100, "overflow": "strongest", "sort_by": "a")");
  std::string list;
  for (int i = 0; i < 100; ++i)
    list += (i == 0 ? "[" : ",") + std::string("{\"a\":") +
            std::to_string(i % 3) + ",\"b\":" + std::to_string(i) + "}";
  run_lists({list + "]"});
  std::vector<double> values = row(0);
  for (std::size_t i = 1; i < 100; ++i) {
    double before = values[2 * i - 1], here = values[2 * i + 1];
    EXPECT_GE(before, here);
    if (before == here) {
      EXPECT_LT(values[2 * i], values[2 * i + 2]);
    }
  }
}

TEST_F(Parse, OverflowErrorMakesALongListBad) {
  set(R"("max": 2, "overflow": "error")");
  expect_bad(R"([{}, {}, {}])", "holds 3 elements, expected at most 2");
}

TEST_F(Parse, ShortListsAreLeftOutAndCounted) {
  set(R"("max": 3, "min": 2)");
  run_lists({R"([{"a": 1}])", R"([{"a": 1}, {"a": 2}])", "[]"});
  EXPECT_EQ(parsed_.rows(), 1);
  EXPECT_EQ(parsed_.keys.integer(0), 11);
  EXPECT_EQ(notes_.too_short, 2);
  EXPECT_THAT(notes_.bad, IsEmpty());
  EXPECT_EQ(types()[0].number_row, "11");
}

TEST_F(Parse, AMinOfZeroKeepsEmptyLists) {
  set(R"("max": 3, "min": 0)");
  run_lists({"[]"});
  EXPECT_THAT(row(0), ElementsAre(0));
}

TEST_F(Parse, ARequiredKeyMissingOrNullMakesTheRowBad) {
  set(R"("max": 3, "required": ["b", "name"])");
  run_lists({R"([{"b": 1, "name": "x"}])"});
  EXPECT_EQ(parsed_.rows(), 1);
  expect_bad(R"([{"b": 1, "name": "x"}, {"name": "x"}])",
             "element [1] has no 'b', or has null for it");
  expect_bad(R"([{"b": null, "name": "x"}])", "element [0] has no 'b'");
  expect_bad(R"([{"b": 1, "name": null}])", "element [0] has no 'name'");
}

TEST_F(Parse, AListThatIsNoneMakesTheRowBad) {
  set();
  expect_bad(std::nullopt, "is NULL, expected a list of objects");
  expect_bad("null", "holds null, expected a list of objects", 0);
  expect_bad(R"({"a": 1})", "holds an object", 0);
  expect_bad(R"([{"a": 1}, 7])", "element [1] is a number", 11);
}

TEST_F(Parse, AValueOfTheWrongTypeMakesTheRowBad) {
  set();
  expect_bad(R"([{"a": "12.5"}])", R"([0].a holds a text: "12.5")", 7);
  // An element beyond max counts too: the row says it, kept or not.
  expect_bad(R"([{}, {}, {}, {"a": []}])", "[3].a holds a list", 19);
}

TEST_F(Parse, JsonThatDoesNotParseNamesItsByte) {
  set();
  expect_bad(R"([{"a": 1}] tail)", "found 't'", 11);
  expect_bad(R"([{"a": NaN}])", "found 'N'", 7);
  expect_bad(R"([{"a": 1e999}])", "does not fit float64", 7);
  expect_bad("[{\"x\": \"\xff\"}]", "UTF-8", 8);
  expect_bad(std::string(1000000, '['), "64 levels", 64);
  expect_bad("", "the end of the text", 0);
}

TEST_F(Parse, ColumnsMustHoldFiniteNumbers) {
  job(R"({"t": {"columns": ["x", "y"]}})");
  Rows rows = block(numbers({1, 2, 3, 4}), numbers({5, NAN, INFINITY, 8}));
  rows.columns[0].clear();
  rows.columns[0].append_null();
  for (double x : {2.0, 3.0, 4.0}) rows.columns[0].append_float64(x);
  run(rows);
  ASSERT_EQ(parsed_.rows(), 1);
  EXPECT_THAT(row(0), ElementsAre(4, 8));
  ASSERT_EQ(notes_.bad.size(), 3u);
  EXPECT_EQ(notes_.bad[0].column, "x");
  EXPECT_EQ(notes_.bad[0].why,
            "is NULL, expected a number; \"missing\" sets a replacement, "
            "as in {\"columns\": [\"x\", ...], \"missing\": \"mean\"}");
  EXPECT_EQ(notes_.bad[1].column, "y");
  EXPECT_EQ(notes_.bad[1].why, "holds NaN, expected a finite number");
  EXPECT_THAT(notes_.bad[2].why, HasSubstr("infinity"));
}

TEST_F(Parse, IntegersKeepTheir64Bits) {
  job(R"({"n": {"columns": ["i"], "dtype": "int64"},
          "t": {"columns": ["i", "flag"], "dtype": "float64"}})");
  options_.fields =
      bound_to_float64(fields_, {}, {{"flag", ColumnType::boolean}});
  Column integers{.type = ColumnType::int64};
  integers.append_int64(9007199254740993);
  Column flags{.type = ColumnType::boolean};
  flags.append_boolean(true);
  run(block(std::move(integers), std::move(flags)));
  EXPECT_EQ(std::bit_cast<std::int64_t>(row(0)[0]), 9007199254740993);
  EXPECT_EQ(row(0)[1], 9007199254740992.0);
  EXPECT_EQ(row(0)[2], 1.0);
}

TEST_F(Parse, ProblemsOfTheReaderNameTheirColumn) {
  job(R"({"t": {"columns": ["x"]}})");
  options_.by_column = true;
  options_.by_name = "session";
  Rows rows = block(numbers({1, 2, 3, 4}), numbers({0, 0, 0, 0}));
  rows.problems = {{3, 1, "holds a blob"},
                   {1, 0, "holds text 'abc' where a number is expected"},
                   {1, 1, "second problem of one row"}};
  run(rows);
  EXPECT_EQ(parsed_.rows(), 2);
  ASSERT_EQ(notes_.bad.size(), 2u);
  EXPECT_EQ(notes_.bad[0].column, "x");
  EXPECT_EQ(notes_.bad[0].shown_key, "11");
  EXPECT_THAT(notes_.bad[0].why, HasSubstr("'abc'"));
  EXPECT_EQ(notes_.bad[1].column, "session");
}

TEST_F(Parse, ABadFieldOutweighsAShortOne) {
  job(R"({"r": {"json_set": {"column": "list", "keys": ["a"], "max": 1}},
          "t": {"columns": ["x"]}})");
  run(block(texts({"[]"}), numbers({NAN})));
  EXPECT_EQ(notes_.too_short, 0);
  EXPECT_EQ(the_bad_row().column, "x");
}

TEST_F(Parse, SeesTheTypesOfRowsThatAreKeptAlone) {
  job(R"({"r": {"json_set": {"column": "list", "keys": ["a"], "max": 1}},
          "t": {"columns": ["x"]}})");
  run(block(texts({R"([{"a": 1}, {"a": 2}, {"a": null}])", R"([{"a": true}])"}),
            numbers({1, NAN})));
  EXPECT_EQ(types()[0].number_row, "10");
  EXPECT_EQ(types()[0].boolean_row, "");
  EXPECT_EQ(notes_.fields[1], nullptr);
}

TEST_F(Parse, SeesTheTypesOfManyKeysAndLongLists) {
  std::string keys, element;
  for (int i = 0; i < 20; ++i) {
    std::string comma = i == 0 ? "" : ",", key = "\"k" + std::to_string(i);
    keys += comma + key + "\"";
    element += comma + key + (i % 3 == 0 ? "\":true" : "\":1");
  }
  job(R"({"r": {"json_set": {"column": "list", "keys": [)" + keys +
      R"(], "max": 9}}})");
  std::string list = "[{" + element + "}";
  for (int i = 1; i < 600; ++i) list += ",{" + element + "}";
  run_lists({list + "]"});
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(types()[i].number_row, i % 3 == 0 ? "" : "10");
    EXPECT_EQ(types()[i].boolean_row, i % 3 == 0 ? "10" : "");
  }
}

TEST_F(Parse, SeesTheTypeOfTheKeyToSortByToo) {
  set(R"("max": 1, "overflow": "strongest", "sort_by": "s",
         "required": ["t"])");
  run_lists({R"([{"a": 1, "s": 0.5, "t": 1}, {"a": 2, "s": true, "t": true}])",
             R"([{"a": 1, "t": "x"}])"});
  ASSERT_EQ(types().size(), 3u);  // beyond max too
  EXPECT_EQ(types()[2].number_row, "10");
  EXPECT_EQ(types()[2].boolean_row, "10");
  EXPECT_EQ(types()[0].number_row, "10");
  notes_ = ParseNotes();
  set(R"("max": 1, "overflow": "strongest", "sort_by": "b")");
  run_lists({R"([{"a": 1, "b": 0.5}])"});
  EXPECT_EQ(types().size(), 2u);
}

TEST_F(Parse, ShowsTheSmallestKeyWhateverTheOrder) {
  set();
  Rows rows = block(texts({R"([{"a": 1}])", R"([{"a": true, "b": 1}])",
                           R"([{"a": 1, "b": true}])", R"([{"a": false}])"}));
  auto with_keys = [&](std::vector<std::int64_t> keys) {
    rows.keys.clear();
    for (std::int64_t key : keys) rows.keys.append_integer(key);
  };
  with_keys({100, 99, -7, 5});
  run(rows);
  ParseNotes first = std::move(notes_);
  notes_ = ParseNotes();
  with_keys({9, 1000, 8, -10});
  run(rows);
  notes_.merge(std::move(first));
  EXPECT_EQ(types()[0].number_row, "-7");
  EXPECT_EQ(types()[0].boolean_row, "-10");
  EXPECT_EQ(types()[1].number_row, "99");
  EXPECT_EQ(types()[1].boolean_row, "-7");
}

TEST_F(Parse, TextKeysCompareByTheirBytes) {
  set();
  Rows rows = block(texts(
      {R"([{"a": 1}])", R"([{"a": 2}])", R"([{"a": 3}])", "null", "null"}));
  rows.keys = KeyList(ColumnType::text);
  for (const char* key : {"b", "Z", "ä", "ü", "c"}) rows.keys.append_bytes(key);
  run(rows);
  EXPECT_EQ(types()[0].number_row, "'Z'");
  EXPECT_EQ(notes_.bad[0].shown_key, "'c'");
  EXPECT_EQ(notes_.bad[1].key, Json("ü"));
}

TEST_F(Parse, BadRowsAreSortedByKeyAfterMerging) {
  set();
  BlockParser parser(options_);
  Rows rows = block(texts({"x", "x"}));
  ParseNotes late, early;
  parser.parse(keys(2, 100), rows, late);
  parser.parse(keys(2, 9), rows, early);
  late.merge(std::move(early));
  late.sort();
  std::vector<std::string> shown;
  for (const BadRow& bad : late.bad) shown.push_back(bad.shown_key);
  EXPECT_THAT(shown, ElementsAre("9", "10", "100", "101"));
}

TEST_F(Parse, OfManyBadRowsTheFirstByKeyAreKeptAndAllAreCounted) {
  set();
  BlockParser parser(options_);
  Rows rows = block(texts(std::vector<Text>(700, "x")));
  ParseNotes all;
  for (std::int64_t first : {5000, 9000, 2000, 100, 7000}) {
    ParseNotes notes;
    parser.parse(keys(700, first), rows, notes);
    all.merge(std::move(notes));
    EXPECT_LE(all.bad.size(), 2 * ParseNotes::kMostBad);
  }
  all.sort();
  EXPECT_EQ(all.bad_rows, 5 * 700);
  ASSERT_EQ(all.bad.size(), ParseNotes::kMostBad);
  EXPECT_EQ(all.bad.front().shown_key, "100");
  EXPECT_EQ(all.bad[699].shown_key, "799");
  EXPECT_EQ(all.bad.back().shown_key, "2299");
}

TEST_F(Parse, MarksRowsByTheirKeyOrByTheSplitsColumn) {
  job(R"({"t": {"columns": ["x"]}})");
  std::vector<std::string> asked;
  options_.side_of = [&](std::string_view value) {
    asked.emplace_back(value);
    return static_cast<std::uint8_t>(asked.size());
  };
  run(block(numbers({1, NAN, 3})));
  EXPECT_THAT(parsed_.sides, ElementsAre(1, 2));
  EXPECT_EQ(asked[0], keys(1).canonical(0));

  options_.by_column = true;
  asked.clear();
  Column sessions{.type = ColumnType::text};
  for (const char* session : {"s1", "s2", "s1"}) sessions.append_text(session);
  run(block(numbers({1, 2, 3}), std::move(sessions)));
  EXPECT_THAT(asked, ElementsAre("s1", "s2", "s1"));

  asked.clear();
  Column whole{.type = ColumnType::int64};
  whole.append_int64(5);
  whole.append_null();
  whole.append_int64(6);
  run(block(numbers({1, 2, 3}), std::move(whole)));
  run(block(numbers({1, 2, 3}), numbers({5.0, 5.5, -1e300})));
  EXPECT_EQ(asked[0], asked[3]);
  EXPECT_EQ(asked[1], "");
  EXPECT_NE(asked[4], asked[0]);
}

TEST_F(Parse, MarksUuidsByTheirBytesAndNothingWithoutAMark) {
  job(R"({"t": {"columns": ["x"]}})");
  Rows rows = block(numbers({1}));
  rows.keys = KeyList(ColumnType::uuid);
  rows.keys.append_bytes("0123456789abcdef");
  run(rows);
  EXPECT_THAT(parsed_.sides, ElementsAre(0));
  std::string asked;
  options_.side_of = [&](std::string_view value) {
    asked = value;
    return std::uint8_t{0};
  };
  run(rows);
  EXPECT_EQ(asked, "0123456789abcdef");
}

TEST_F(Parse, BorrowedBytesAreNotReadBeyondTheirEnd) {
  set();
  std::string list = R"([{"a": 1.25, "b": 33}])";
  auto bytes = std::make_shared<std::vector<char>>(list.begin(), list.end());
  Rows rows = block(texts({list}));
  rows.columns[0].values =
      Bytes::borrow(std::as_bytes(std::span(*bytes)), bytes);
  run(rows);
  EXPECT_THAT(row(0), ElementsAre(1, 1.25, 33));
}

TEST_F(Parse, AHashIsOfKeyAndValuesAlone) {
  set();
  auto hashes = [&](const char* list) {
    run_lists({list, list});
    return parsed_.hashes;
  };
  auto first = hashes(R"([{"a": 1.0, "b": -0.0}])");
  EXPECT_EQ(first, hashes(R"([ {"b": 0, "a": 10e-1} ])"));
  EXPECT_NE(first[0], hashes(R"([{"a": 1, "b": null}])")[0]);
  EXPECT_NE(first[0], first[1]) << "their keys differ";
}

TEST_F(Parse, KeepsTheKeysOfRowsThatAreLeftOut) {
  set();
  run_lists({R"([{"a": 1, "b": 2}])", "[]", "no list"});
  EXPECT_EQ(parsed_.keys.size(), 1);
  EXPECT_EQ(notes_.left_out.count(), 2);
}

TEST_F(Parse, ResultsHaveNoRoomToSpare) {
  set();
  BlockParser parser(options_);
  Rows many = block(texts(std::vector<Text>(50, R"([{}, {}])")));
  Rows few = block(texts({R"([{"a": 1}])", "x"}));
  parser.parse(many.keys, many, notes_);
  parsed_ = parser.parse(few.keys, few, notes_);
  EXPECT_EQ(parsed_.fields[0].bytes.size(), 3 * sizeof(double));
  EXPECT_EQ(parsed_.fields[0].ends.capacity(), 1u);
  EXPECT_EQ(parsed_.sides.capacity(), 1u);
}

TEST_F(Parse, ABlockOfOtherColumnsIsOurBug) {
  set();
  try {
    run(block(numbers({1})));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
  }
}

}  // namespace
}  // namespace penstock
