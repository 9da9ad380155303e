#include "penstock/inspect/survey.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/base/hash.h"
#include "penstock/base/log.h"
#include "penstock/base/name_index.h"
#include "penstock/base/utf8.h"

namespace penstock {
namespace {

constexpr double kSecondsPerDay = 86400;
constexpr std::size_t kComparedBytes = 200;

bool is_real(Dtype dtype) {
  return dtype == Dtype::float32 || dtype == Dtype::float64 ||
         dtype == Dtype::float16 || dtype == Dtype::bfloat16;
}

void count(ColumnSurvey& survey, std::string_view value, std::int64_t rows) {
  if (survey.many_values) return;
  auto found = survey.values.find(value);
  if (found == survey.values.end())
    found = survey.values.emplace(value, 0).first;
  found->second += rows;
  if (survey.values.size() <= ColumnSurvey::kMostValues) return;
  survey.many_values = true;
  survey.values.clear();
}

/// As an integer that float64 tells from its neighbours.
bool is_whole(double value) {
  return std::abs(value) <= 0x1p53 && value == std::trunc(value);
}

void find_fraction(ColumnSurvey& survey) {
  survey.whole = false;
  survey.values.clear();
}

void widen_texts(ColumnSurvey& survey, std::string_view least,
                 std::string_view greatest, bool first) {
  least = least.substr(0, kComparedBytes);
  greatest = greatest.substr(0, kComparedBytes);
  if (first || least < survey.first) survey.first = least;
  if (first || greatest > survey.last) survey.last = greatest;
}

// mix64 is a bijection, so different numbers have different hashes.
std::uint64_t hash_of(std::uint64_t number) { return mix64(number + 1); }

void settle_doubts(const SourceSpec& spec, const std::vector<Doubt>& doubts) {
  for (const Doubt& doubt : doubts) {
    if (doubt.column.empty()) {
      log(LogLevel::warning, spec.path + ": " + doubt.why + "; " + doubt.next);
      continue;
    }
    throw Error(ErrorKind::request, {.code = "source.unclear",
                                     .what = "cannot determine what column '" +
                                             doubt.column + "' holds",
                                     .where = spec.path,
                                     .why = doubt.why,
                                     .next = doubt.next});
  }
}

}  // namespace

void DistinctValues::add(std::uint64_t hash) {
  if (least_.size() == kKept && hash >= *least_.rbegin()) return;
  least_.insert(hash);
  if (least_.size() > kKept) least_.erase(std::prev(least_.end()));
}

void DistinctValues::add(const DistinctValues& others) {
  for (std::uint64_t hash : others.least_) add(hash);
}

// The k smallest of n different hashes, which are spread evenly over [0, 2^64):
// the k-th one, h, lies at about k / n of the range, and (k - 1) * 2^64 / h is
// an unbiased estimate of n with a relative error of about 1 / sqrt(k - 2).
// Sketches of several threads are joined by the k smallest of both.
std::int64_t DistinctValues::count() const {
  if (exact()) return std::ssize(least_);
  return std::llround(static_cast<double>(kKept - 1) * 0x1p64 /
                      static_cast<double>(*least_.rbegin()));
}

std::vector<std::int64_t> ColumnSurvey::histogram(std::size_t ranges) const {
  std::vector<std::int64_t> rows(ranges);
  const double width = (max - min) / static_cast<double>(ranges);
  for (double value : sample) {
    const double at = width > 0 ? (value - min) / width : 0;
    ++rows[std::min(ranges - 1, static_cast<std::size_t>(at))];
  }
  return rows;
}

bool ColumnSurvey::integer() const {
  return type.kind == ColumnKind::number && !info.timestamp &&
         !is_real(type.dtype);
}

bool ColumnSurvey::real() const {
  return type.kind == ColumnKind::number && !info.timestamp &&
         is_real(type.dtype);
}

Schema surveyed_schema(const SourceSpec& spec) {
  Schema schema = read_schema(spec);
  settle_doubts(spec, schema.doubts);
  std::vector<ColumnInfo> columns;
  const NameIndex left_out(schema.left_out, &LeftOutColumn::name);
  for (const ColumnInfo& column : schema.columns)
    if (!left_out.find(column.name)) columns.push_back(column);
  // Reading what cannot be read says why.
  if (!columns.empty()) schema.columns = std::move(columns);
  return schema;
}

std::vector<ColumnRequest> surveyed_columns(const Schema& schema) {
  std::vector<ColumnRequest> wanted;
  for (const ColumnInfo& column : schema.columns)
    wanted.push_back(
        {column.name, column.timestamp ? ReadAs::number : column.as});
  return wanted;
}

Surveyor::Surveyor(const Schema& schema, const Source& source) {
  survey_.shown = source.shown();
  for (std::size_t i = 0; i < schema.columns.size(); ++i) {
    survey_.columns.push_back(
        {.info = schema.columns[i], .type = source.types()[i]});
    numbers_.push_back({.random = Random(0, 0, i, 0)});
  }
}

void Surveyor::add(const Block& block) {
  for (std::size_t i = 0; i < survey_.columns.size(); ++i)
    add(i, block.columns[i]);
  survey_.rows += block.rows;
  std::set<std::int64_t> bad;
  for (const RowProblem& problem : block.problems) bad.insert(problem.row);
  survey_.bad_rows += std::ssize(bad);
}

void Surveyor::add(std::size_t column, const Column& values) {
  for (std::int64_t row = 0; row < values.length; ++row)
    if (values.valid(row))
      value(column, values, row);
    else
      ++survey_.columns[column].missing;
}

void Surveyor::value(std::size_t column, const Column& values,
                     std::int64_t row) {
  ColumnSurvey& survey = survey_.columns[column];
  switch (values.type.kind) {
    case ColumnKind::utf8:
      return text(column, values.text(row));
    case ColumnKind::dictionary: {
      const Column& words = values.children[0];
      const std::int64_t at = values.as_int64(row);
      if (!words.type.is_text()) return;
      if (words.valid(at)) return text(column, words.text(at));
      ++survey.missing;
      return;
    }
    case ColumnKind::boolean:
      survey.distinct.add(hash_of(values.boolean(row)));
      return count(survey, values.boolean(row) ? "true" : "false", 1);
    case ColumnKind::number:
      return is_real(values.type.dtype) ? real(column, values.as_float64(row))
                                        : integer(column, values.as_int64(row));
    case ColumnKind::null:
      ++survey.missing;
      return;
    case ColumnKind::uuid:
      survey.distinct.add(hash64(
          std::span<const std::byte>(values.uuid(row), std::size_t{16})));
      return;
    case ColumnKind::binary:
      survey.distinct.add(hash64(std::as_bytes(std::span(values.text(row)))));
      return;
    default:
      return;
  }
}

void Surveyor::text(std::size_t column, std::string_view text) {
  ColumnSurvey& survey = survey_.columns[column];
  Numbers& known = numbers_[column];
  widen_texts(survey, text, text, known.seen++ == 0);
  survey.distinct.add(hash64(std::as_bytes(std::span(text))));
  count(survey, text, 1);
}

// A sample of all that were seen, each as likely as any other (Vitter 1985).
bool Surveyor::number(std::size_t column, double value, std::uint64_t hash) {
  ColumnSurvey& survey = survey_.columns[column];
  Numbers& known = numbers_[column];
  const bool first = known.seen == 0;
  survey.min = first ? value : std::min(survey.min, value);
  survey.max = first ? value : std::max(survey.max, value);
  survey.distinct.add(hash);
  ++known.seen;
  if (survey.sample.size() < ColumnSurvey::kSample) {
    survey.sample.push_back(value);
  } else {
    const auto at = known.random.below(static_cast<std::uint64_t>(known.seen));
    if (at < ColumnSurvey::kSample) survey.sample[at] = value;
  }
  return first;
}

void Surveyor::real(std::size_t column, double value) {
  ColumnSurvey& survey = survey_.columns[column];
  if (std::isnan(value)) {
    ++survey.missing;
  } else if (!std::isfinite(value)) {
    ++survey.infinite;
  } else {
    number(column, value, hash_of(std::bit_cast<std::uint64_t>(value + 0.0)));
    survey.whole_days =
        survey.whole_days && std::fmod(value, kSecondsPerDay) == 0;
    if (survey.whole && is_whole(value))
      count(survey, std::to_string(static_cast<std::int64_t>(value)), 1);
    else
      find_fraction(survey);
  }
}

void Surveyor::integer(std::size_t column, std::int64_t value) {
  ColumnSurvey& survey = survey_.columns[column];
  std::int64_t& last = numbers_[column].last;
  const auto bits = static_cast<std::uint64_t>(value);
  // Of uint64, numbers beyond 2^63 come as negative ones.
  const bool beyond = survey.type.dtype == Dtype::uint64 && value < 0;
  const bool first = number(
      column, beyond ? static_cast<double>(bits) : static_cast<double>(value),
      hash_of(bits));
  const std::int64_t limit =
      beyond ? std::numeric_limits<std::int64_t>::max() : value;
  survey.least = first ? limit : std::min(survey.least, limit);
  survey.greatest = first ? limit : std::max(survey.greatest, limit);
  survey.counts_up = survey.counts_up &&
                     (first || bits == static_cast<std::uint64_t>(last) + 1);
  count(survey, beyond ? std::to_string(bits) : std::to_string(value), 1);
  last = value;
}

void Surveyor::add(const Surveyor& other) {
  for (std::size_t i = 0; i < survey_.columns.size(); ++i) {
    ColumnSurvey& to = survey_.columns[i];
    const ColumnSurvey& from = other.survey_.columns[i];
    Numbers& known = numbers_[i];
    const Numbers& others = other.numbers_[i];
    to.missing += from.missing;
    to.infinite += from.infinite;
    to.counts_up = false;
    to.whole_days = to.whole_days && from.whole_days;
    to.distinct.add(from.distinct);
    if (from.many_values) {
      to.many_values = true;
      to.values.clear();
    }
    for (const auto& [value, rows] : from.values) count(to, value, rows);
    if (!from.whole || !to.whole) find_fraction(to);
    if (others.seen == 0) continue;
    widen_texts(to, from.first, from.last, known.seen == 0);
    to.min = known.seen == 0 ? from.min : std::min(to.min, from.min);
    to.max = known.seen == 0 ? from.max : std::max(to.max, from.max);
    to.least = known.seen == 0 ? from.least : std::min(to.least, from.least);
    to.greatest =
        known.seen == 0 ? from.greatest : std::max(to.greatest, from.greatest);
    // A place of the sample is the other's as often as its rows are.
    for (std::size_t at = 0; at < from.sample.size(); ++at) {
      if (to.sample.size() < ColumnSurvey::kSample)
        to.sample.push_back(from.sample[at]);
      else if (known.random.below(
                   static_cast<std::uint64_t>(known.seen + others.seen)) <
               static_cast<std::uint64_t>(others.seen))
        to.sample[at] = from.sample[at];
    }
    known.seen += others.seen;
  }
  survey_.rows += other.survey_.rows;
  survey_.bad_rows += other.survey_.bad_rows;
}

Survey survey_rows(const SourceSpec& spec, StopFlag stop) {
  return survey_columns(spec, surveyed_schema(spec), stop);
}

Survey survey_columns(const SourceSpec& spec, const Schema& schema,
                      StopFlag stop) {
  std::unique_ptr<Source> source =
      open_source(spec, surveyed_columns(schema), {.stop = stop});
  Surveyor surveyor(schema, *source);
  // One reader: that integers count up is seen in the order of the rows.
  for (const Partition& part : source->partitions(1))
    source->open_reader()->scan(part, {}, [&](KeyList&, Block& block) {
      end_if_stopped(stop);
      surveyor.add(block);
      return true;
    });
  return surveyor.survey();
}

}  // namespace penstock
