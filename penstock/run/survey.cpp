#include "penstock/run/survey.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

constexpr double kSecondsPerDay = 86400;

bool is_real(Dtype dtype) {
  return dtype == Dtype::float32 || dtype == Dtype::float64 ||
         dtype == Dtype::float16 || dtype == Dtype::bfloat16;
}

void count(ColumnSurvey& survey, std::string_view value) {
  if (survey.many_values) return;
  auto found = survey.values.find(value);
  if (found == survey.values.end())
    found = survey.values.emplace(value, 0).first;
  ++found->second;
  if (survey.values.size() <= ColumnSurvey::kMostValues) return;
  survey.many_values = true;
  survey.values.clear();
}

void widen(ColumnSurvey& survey, double value, bool first) {
  survey.min = first ? value : std::min(survey.min, value);
  survey.max = first ? value : std::max(survey.max, value);
}

/// Adds the values of a block's column to those of the rows before it.
class Add {
 public:
  explicit Add(ColumnSurvey& survey) : survey_(survey) {}

  void column(const Column& column) {
    for (std::int64_t row = 0; row < column.length; ++row)
      if (column.valid(row))
        value(column, row);
      else
        ++survey_.missing;
  }

 private:
  void value(const Column& column, std::int64_t row) {
    switch (column.type.kind) {
      case ColumnKind::utf8:
        return count(survey_, column.text(row));
      case ColumnKind::dictionary:
        return text_of_dictionary(column, row);
      case ColumnKind::boolean:
        return count(survey_, column.boolean(row) ? "true" : "false");
      case ColumnKind::number:
        return is_real(column.type.dtype) ? real(column.as_float64(row))
                                          : integer(column.as_int64(row));
      case ColumnKind::null:
        ++survey_.missing;
        return;
      default:
        return;
    }
  }

  void text_of_dictionary(const Column& column, std::int64_t row) {
    const Column& values = column.children[0];
    const std::int64_t at = column.as_int64(row);
    if (!values.type.is_text()) return;
    values.valid(at) ? count(survey_, values.text(at))
                     : static_cast<void>(++survey_.missing);
  }

  void real(double value) {
    if (std::isnan(value)) {
      ++survey_.missing;
      return;
    }
    if (!std::isfinite(value)) {
      ++survey_.infinite;
      return;
    }
    widen(survey_, value, !any_);
    survey_.whole_days =
        survey_.whole_days && std::fmod(value, kSecondsPerDay) == 0;
    any_ = true;
  }

  void integer(std::int64_t value) {
    widen(survey_, static_cast<double>(value), !any_);
    survey_.counts_up = survey_.counts_up && (!any_ || value == last_ + 1);
    count(survey_, std::to_string(value));
    last_ = value;
    any_ = true;
  }

  ColumnSurvey& survey_;
  bool any_ = false;
  std::int64_t last_ = 0;
};

}  // namespace

bool ColumnSurvey::integer() const {
  return type.kind == ColumnKind::number && !info.timestamp &&
         !is_real(type.dtype);
}

bool ColumnSurvey::real() const {
  return type.kind == ColumnKind::number && !info.timestamp &&
         is_real(type.dtype);
}

Survey survey_rows(const SourceSpec& spec, StopFlag stop) {
  Survey survey;
  std::vector<ColumnRequest> wanted;
  for (const ColumnInfo& column : read_schema(spec).columns) {
    survey.columns.push_back({.info = column});
    wanted.push_back(
        {column.name, column.timestamp ? ReadAs::number : ReadAs::value});
  }
  std::unique_ptr<Source> source =
      open_source(spec, wanted, {.stop = stop, .keys = false});
  survey.shown = source->shown();
  std::vector<Add> add;
  for (std::size_t i = 0; i < survey.columns.size(); ++i) {
    survey.columns[i].type = source->types()[i];
    add.emplace_back(survey.columns[i]);
  }
  // One reader: that integers count up is seen in the order of the rows.
  for (const Partition& part : source->partitions(1))
    source->open_reader()->scan(part, {}, [&](KeyList&, Block& block) {
      end_if_stopped(stop);
      survey.rows += block.rows;
      for (std::size_t i = 0; i < add.size(); ++i)
        add[i].column(block.columns[i]);
      return true;
    });
  return survey;
}

}  // namespace penstock
