#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "penstock/transforms/transforms.h"

/// What every kind of field must do, as field_kind.h says it. A new one joins
/// with a case: a field, and the columns that it reads.
///
///     INSTANTIATE_TEST_SUITE_P(
///         MyKind, FieldKindSuite,
///         testing::Values(FieldKindCase{"mine", my_field, my_columns}),
///         testing::PrintToStringParamName());
namespace penstock {

struct FieldKindCase {
  std::string name;
  std::function<Field()> field;  ///< the same one, made again
  /// One for each request, all of the same length. Some rows may be bad.
  std::function<std::vector<Column>()> columns;

  friend void PrintTo(const FieldKindCase& c, std::ostream* out) {
    *out << c.name;
  }
};

/// Of the field `x` with this section of a job.
inline FieldKindCase case_of_job(const std::string& name,
                                 const std::string& section,
                                 std::function<std::vector<Column>()> columns) {
  return {name,
          [section] {
            return parse_fields(
                Json::parse(R"({"x": )" + section + "}", "test"), "fields")[0];
          },
          std::move(columns)};
}

class FieldKindSuite : public testing::TestWithParam<FieldKindCase> {
 protected:
  /// A run of bytes for each row.
  using Rows = std::vector<std::string>;
  struct Parsed {
    Rows values, canonical;
    Rows faults;                                     ///< "row: why"
    std::vector<std::unique_ptr<FieldNotes>> notes;  ///< of each block
    std::vector<std::int64_t> kept;

    bool same_rows(const Parsed& other) const {
      return values == other.values && canonical == other.canonical &&
             faults == other.faults;
    }
  };

  FieldKindSuite() : field_(GetParam().field()) {
    block_.columns = GetParam().columns();
    block_.rows = block_.columns.at(0).length;
    FieldColumns columns;
    for (const ColumnRequest& request : field_.kind->facts().columns) {
      const std::size_t at = columns.at.size();
      columns.at.push_back(at);
      columns.info.push_back({.name = request.column});
      columns.types.push_back(block_.columns.at(at).type);
    }
    bound_ = field_.kind->bind(std::move(columns));
    layout_.append(field_.kind->facts().stored.tensors);
    outputs_ = field_.kind->facts().outputs;
  }

  static std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  Block slice(std::int64_t begin, std::int64_t end) const {
    Block part;
    part.rows = end - begin;
    for (const Column& column : block_.columns) {
      Column& to = part.columns.emplace_back();
      to.type = column.type;
      for (const Column& child : column.children)
        to.children.emplace_back().type = child.type;
      for (std::int64_t row = begin; row < end; ++row)
        to.append_from(column, row);
    }
    return part;
  }

  /// All rows, by one parser, in blocks of `at_once`.
  Parsed parse(std::int64_t at_once) const {
    Parsed parsed;
    auto parser = bound_->parser();
    for (std::int64_t begin = 0; begin < block_.rows; begin += at_once) {
      const std::int64_t end = std::min(block_.rows, begin + at_once);
      Values values;
      Faults faults;
      parser->parse(slice(begin, end), values, faults);
      check_runs(values, 0, end - begin, field_.name);
      check_rejected(faults.rows, end - begin, field_.name);
      const Values& canonical = parser->canonical(values);
      check_runs(canonical, 0, end - begin, field_.name);
      std::vector<std::int64_t> kept;
      KeyList keys(ColumnType::int64);
      auto fault = faults.rows.begin();
      for (std::int64_t row = 0; row < end - begin; ++row) {
        const bool bad = fault != faults.rows.end() && fault->row == row;
        // What is in the run of a row that is rejected does not matter.
        parsed.values.push_back(bad ? "" : text_of(values.row(row)));
        parsed.canonical.push_back(bad ? "" : text_of(canonical.row(row)));
        if (bad) {
          parsed.faults.push_back(std::to_string(begin + row) + ": " +
                                  (fault++)->why);
          continue;
        }
        kept.push_back(row);
        keys.append_integer(begin + row);
        parsed.kept.push_back(begin + row);
      }
      parser->keep(kept, keys);
      parsed.notes.push_back(parser->take_notes());
    }
    return parsed;
  }

  static std::vector<ValueRow> rows_of(const Parsed& parsed) {
    std::vector<ValueRow> rows;
    for (std::int64_t row : parsed.kept)
      rows.push_back(std::as_bytes(
          std::span(parsed.values[static_cast<std::size_t>(row)])));
    return rows;
  }
  /// Of all blocks, in this order of merging.
  static std::unique_ptr<FieldNotes> merged(Parsed parsed, bool backwards) {
    if (backwards) std::ranges::reverse(parsed.notes);
    std::unique_ptr<FieldNotes> all;
    for (std::unique_ptr<FieldNotes>& notes : parsed.notes) {
      if (all == nullptr)
        all = std::move(notes);
      else if (notes != nullptr)
        all->merge(*notes);
    }
    return all;
  }

  /// Over the kept rows, of which two of three are on the train side, in parts
  /// of so many blocks of ids.
  Json fitted(const Parsed& parsed, const FieldNotes* notes,
              std::size_t blocks) const {
    auto fit = bound_->fit(notes);
    if (fit == nullptr) return bound_->unfitted().value_or(Json());
    const std::vector<ValueRow> rows = rows_of(parsed);
    std::vector<std::uint8_t> train(rows.size());
    for (std::size_t i = 0; i < train.size(); ++i) train[i] = i % 3 != 2;
    do {
      std::vector<std::unique_ptr<FieldFit>> parts;
      for (std::size_t at = 0, block = 0; at < rows.size();
           at += FieldFit::kBlock, ++block) {
        const std::size_t count =
            std::min(rows.size() - at, std::size_t{FieldFit::kBlock});
        if (block % blocks == 0) parts.push_back(fit->part());
        parts.back()->add(std::span(rows).subspan(at, count),
                          std::span(train).subspan(at, count));
      }
      for (auto& part : parts) fit->merge(*part);
    } while (fit->again());
    return fit->statistics();
  }
  Json fitted(const Parsed& parsed) const {
    return fitted(parsed, merged(parse(512), false).get(), 1);
  }

  struct Stored {
    Rows tensors, runs;
    std::vector<std::int64_t> rejected;
    friend bool operator==(const Stored&, const Stored&) = default;
  };
  /// Encodes rows, `at_once` at a time, into memory full of `fill`.
  Stored store(std::span<const ValueRow> rows, const Json& statistics,
               std::size_t at_once, std::byte fill) const {
    constexpr std::size_t kBehind = 64;
    const StoredForm& form = field_.kind->facts().stored;
    const std::size_t stride = (layout_.row_bytes + kBehind + 7) / 8 * 8;
    auto encoder = bound_->encoder(statistics, "statistics." + field_.name);
    Stored stored;
    for (std::size_t at = 0; at < rows.size(); at += at_once) {
      const std::size_t count = std::min(rows.size() - at, at_once);
      std::vector<std::byte> memory(count * stride, fill);
      Values runs;
      Faults faults;
      encoder->encode(rows.subspan(at, count),
                      {.data = memory.data(),
                       .stride = stride,
                       .runs = form.element_bytes > 0 ? &runs : nullptr},
                      faults);
      check_rejected(faults.rows, static_cast<std::int64_t>(count),
                     field_.name);
      if (form.element_bytes > 0)
        check_runs(runs, 0, static_cast<std::int64_t>(count), field_.name);
      auto fault = faults.rows.begin();
      for (std::size_t r = 0; r < count; ++r) {
        const auto row = static_cast<std::int64_t>(r);
        const std::span bytes = std::span(memory).subspan(r * stride, stride);
        EXPECT_THAT(bytes.subspan(layout_.row_bytes), testing::Each(fill))
            << "behind row " << at + r;
        const bool bad = fault != faults.rows.end() && fault->row == row;
        if (bad) {
          stored.rejected.push_back(std::ssize(stored.tensors));
          ++fault;
        }
        std::string tensors;
        for (const TensorSpec& tensor : layout_.tensors)
          tensors += text_of(bytes.subspan(tensor.offset, tensor.bytes));
        stored.tensors.push_back(bad ? "" : tensors);
        if (form.element_bytes == 0) continue;
        EXPECT_EQ(runs.row(row).size() % form.element_bytes, 0U);
        stored.runs.push_back(bad ? "" : text_of(runs.row(row)));
      }
    }
    return stored;
  }

  /// What comes into a batch of stored rows, all outputs of a row one after
  /// the other, and which of them are rejected.
  struct Finished {
    Rows rows;
    std::vector<std::int64_t> rejected;
    friend bool operator==(const Finished&, const Finished&) = default;
  };
  Finished finish(const Parsed& parsed, const Json& statistics, bool train,
                  std::size_t at_once, std::byte fill) const {
    Finished finished;
    auto finisher = field_.kind->finisher(train);
    if (finisher == nullptr) return finished;
    const std::vector<ValueRow> values = rows_of(parsed);
    const Batch batch(*this, values, statistics);
    for (std::size_t at = 0; at < batch.rows.size(); at += at_once) {
      const std::size_t count = std::min(batch.rows.size() - at, at_once);
      const std::span rows = std::span(batch.rows).subspan(at, count);
      Places places(*this, rows, fill);
      finisher->finish(rows, {.seed = 7, .epoch = 3}, places.to);
      const std::span<const RowFault> bad = finisher->rejected();
      check_rejected(bad, static_cast<std::int64_t>(count), field_.name);
      for (const RowFault& fault : bad)
        finished.rejected.push_back(static_cast<std::int64_t>(at) + fault.row);
      for (std::size_t r = 0; r < count; ++r) {
        const bool rejected =
            std::ranges::count(bad, static_cast<std::int64_t>(r),
                               &RowFault::row) > 0;
        finished.rows.push_back(rejected ? "" : places.row(r));
      }
      places.expect_nothing_beside(fill);
    }
    return finished;
  }

  /// Stored rows as a data set keeps them.
  struct Batch {
    Batch(const FieldKindSuite& of, std::span<const ValueRow> values,
          const Json& statistics) {
      const std::size_t element = of.field_.kind->facts().stored.element_bytes;
      const std::size_t stride = (of.layout_.row_bytes + 7) / 8 * 8;
      memory.resize(values.size() * stride);
      Faults faults;
      of.bound_->encoder(statistics, "statistics." + of.field_.name)
          ->encode(values,
                   {.data = memory.data(),
                    .stride = stride,
                    .runs = element > 0 ? &runs : nullptr},
                   faults);
      auto fault = faults.rows.begin();
      for (std::size_t r = 0; r < values.size(); ++r) {
        const auto at = static_cast<std::int64_t>(r);
        if (fault != faults.rows.end() && fault->row == at) {
          ++fault;
          continue;
        }
        StoredRow& row = rows.emplace_back();
        row.tensors = memory.data() + r * stride;
        row.range = {.sample = at};
        if (element == 0) continue;
        row.run = row.head = runs.row(at);
        row.range.end = static_cast<std::int32_t>(row.run.size() / element);
      }
    }
    std::vector<std::byte> memory;
    Values runs;
    std::vector<StoredRow> rows;
  };

  /// Where rows go, 64 bytes apart from each other.
  struct Places {
    Places(const FieldKindSuite& of, std::span<const StoredRow> rows,
           std::byte fill)
        : starts(of.outputs_.size()), memory(of.outputs_.size()) {
      for (const StoredRow& row : rows) lengths.push_back(row.range.end);
      for (std::size_t o = 0; o < of.outputs_.size(); ++o) {
        const Output& output = of.outputs_[o];
        const bool varies = output.lengths != Lengths::equal;
        const std::size_t bytes = output.bytes();
        const auto gap = static_cast<std::int64_t>(64 / bytes + 1);
        std::int64_t at = gap;
        for (std::int32_t length : lengths) {
          starts[o].push_back(at);
          at += (varies ? length : 1) + gap;
        }
        memory[o].assign(static_cast<std::size_t>(at) * bytes, fill);
        to.push_back(
            {.data = memory[o].data(), .bytes = bytes, .starts = starts[o]});
        if (varies) to.back().lengths = lengths;
      }
    }
    std::span<std::byte> bytes(std::size_t output, std::size_t row) {
      const TensorPlace& place = to[output];
      return {place.row(row),
              place.bytes * (place.lengths.empty() ? 1
                                                   : static_cast<std::size_t>(
                                                         place.lengths[row]))};
    }
    std::string row(std::size_t at) {
      std::string all;
      for (std::size_t o = 0; o < to.size(); ++o) all += text_of(bytes(o, at));
      return all;
    }
    void expect_nothing_beside(std::byte fill) {
      for (std::size_t o = 0; o < to.size(); ++o) {
        for (std::size_t r = 0; r < starts[o].size(); ++r)
          std::ranges::fill(bytes(o, r), fill);
        EXPECT_THAT(memory[o], testing::Each(fill)) << "output " << o;
      }
    }
    std::vector<std::int32_t> lengths;
    std::vector<std::vector<std::int64_t>> starts;
    std::vector<std::vector<std::byte>> memory;
    std::vector<TensorPlace> to;
  };

  const Field field_;
  Block block_;
  std::shared_ptr<const BoundField> bound_;
  RowLayout layout_;
  std::vector<Output> outputs_;
};

TEST_P(FieldKindSuite, DeclaresWhatFitsTogether) { check_declared(field_); }

TEST_P(FieldKindSuite, ParsesARowTheSameInAnyBlockAndThread) {
  const Parsed all = parse(block_.rows);
  EXPECT_FALSE(all.kept.empty());
  std::vector<std::jthread> threads;
  for (std::int64_t at_once : {1, 7, 512, 512})
    threads.emplace_back([this, &all, at_once] {
      EXPECT_TRUE(parse(at_once).same_rows(all)) << at_once << " rows a block";
    });
}

TEST_P(FieldKindSuite, NotesSayTheSameInAnyOrderAndWhenReadBack) {
  const Parsed parsed = parse(block_.rows);
  auto notes = merged(parse(100), false), backwards = merged(parse(100), true);
  const std::string expected = fitted(parsed, notes.get(), 1).dump();
  EXPECT_EQ(fitted(parsed, backwards.get(), 1).dump(), expected);
  if (notes == nullptr) return;
  const Bytes saved = notes->saved();
  if (saved.size() == 0) return;
  auto read = bound_->notes_of(saved.span());
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(fitted(parsed, read.get(), 1).dump(), expected);
}

TEST_P(FieldKindSuite, StatisticsDependOnNoPartsAndSurviveBeingWritten) {
  const Parsed parsed = parse(block_.rows);
  const Json statistics = fitted(parsed);
  auto notes = merged(parse(512), false);
  EXPECT_EQ(fitted(parsed, notes.get(), 1000).dump(), statistics.dump());
  const Json read = Json::parse(statistics.dump(), "statistics.json");
  EXPECT_EQ(read, statistics);
  const std::vector<ValueRow> rows = rows_of(parsed);
  EXPECT_EQ(store(rows, read, rows.size(), std::byte{}),
            store(rows, statistics, rows.size(), std::byte{}));
}

TEST_P(FieldKindSuite, StoresEveryByteOfARowAndNoOther) {
  const Parsed parsed = parse(block_.rows);
  const Json statistics = fitted(parsed);
  const std::vector<ValueRow> rows = rows_of(parsed);
  const Stored all = store(rows, statistics, rows.size(), std::byte{0xdb});
  std::vector<std::jthread> threads;
  for (std::size_t at_once : {std::size_t{1}, std::size_t{7}, rows.size()})
    threads.emplace_back([&, at_once] {
      EXPECT_EQ(store(rows, statistics, at_once, std::byte{0x24}), all)
          << at_once << " rows at once";
    });
}

TEST_P(FieldKindSuite, FinishesARowTheSameWithTheSameKey) {
  const Parsed parsed = parse(block_.rows);
  const Json statistics = fitted(parsed);
  for (bool train : {true, false}) {
    const Finished all =
        finish(parsed, statistics, train, parsed.kept.size(), std::byte{0xdb});
    std::vector<std::jthread> threads;
    for (std::size_t at_once : {1U, 7U, 512U})
      threads.emplace_back([&, at_once] {
        EXPECT_EQ(finish(parsed, statistics, train, at_once, std::byte{0x24}),
                  all)
            << at_once << " rows at once";
      });
  }
}

TEST_P(FieldKindSuite, TheRecipeIsThatOfTheSameSettings) {
  const FieldKind& kind = *field_.kind;
  const std::string recipe = kind.facts().recipe.dump();
  EXPECT_EQ(GetParam().field().kind->facts().recipe.dump(), recipe);
  EXPECT_EQ(Json::parse(recipe, "recipe").dump(), recipe);
  const std::string stored = kind.facts().stored_recipe.dump();
  EXPECT_EQ(Json::parse(stored, "recipe").dump(), stored);
  if (!kind.facts().built_in) return;
  // That of a built-in kind is its section, with nothing left to defaults.
  Json section{Json::Object{}};
  section[field_.name] = kind.facts().recipe;
  EXPECT_EQ(parse_fields(section, "fields")[0].kind->facts().recipe.dump(),
            recipe);
}

}  // namespace penstock
