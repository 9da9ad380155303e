#include "penstock/transforms/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "penstock/base/error.h"
#include "penstock/base/sync.h"

namespace penstock {
namespace {

constexpr std::int64_t kBlockOfIds = 1024;
/// No sum of fewer than 2^63 values overflows that are scaled by this.
constexpr double kSmall = 0x1p-64;
/// A scale of squares, and its reciprocal, is a power of two up to this one's.
constexpr int kMostExponent = 1000;

const std::vector<std::string>& names_of(const Field& field) {
  return field.json_set() != nullptr ? field.json_set()->keys
                                     : field.columns()->columns;
}

std::string place_of(const Field& field, const std::string& name) {
  return "field '" + field.name + "', " +
         (field.json_set() != nullptr ? "key" : "column") + " '" + name + "'";
}

void refuse_if_mixed(const Field& field, const std::string& key,
                     const Seen::Key& seen) {
  if (seen.numbers == 0 || seen.booleans == 0) return;
  throw Error(ErrorKind::transform,
              {.code = "transform.mixed_types",
               .what = "cannot use a key that holds both numbers and booleans",
               .where = place_of(field, key),
               .why = "the row with key " + seen.number_row +
                      " holds a number, the row with key " + seen.boolean_row +
                      " a boolean",
               .next = "make it one type in the data, or name another key"});
}

// The names and types, before any value is looked at.
std::vector<std::vector<Standard>> empty_standards(
    const std::vector<Field>& fields, const Seen& seen,
    const std::vector<std::vector<bool>>& boolean_columns) {
  std::vector<std::vector<Standard>> standards;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const Field& field = fields[f];
    const std::vector<std::string>& names = names_of(field);
    std::vector<Standard>& of_field = standards.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) {
      Standard standard{.name = names[i]};
      if (field.columns() != nullptr) {
        standard.boolean = f < boolean_columns.size() &&
                           i < boolean_columns[f].size() &&
                           boolean_columns[f][i];
      } else if (f < seen.sets.size() && i < seen.sets[f].size()) {
        refuse_if_mixed(field, names[i], seen.sets[f][i]);
        standard.boolean = seen.sets[f][i].booleans > 0;
      }
      standard.standardize = field.standardize && !standard.boolean;
      of_field.push_back(std::move(standard));
    }
    if (f < seen.sets.size() && seen.sets[f].size() > names.size())
      refuse_if_mixed(field, field.json_set()->sort_by,
                      seen.sets[f][names.size()]);
  }
  return standards;
}

// The numbers that one pass collects for one key or column.
struct Sum {
  double block = 0;  // of the current 1024 ids
  double total = 0;
  double mean = 0;   // what the second pass measures from,
  double scale = 1;  // in these units
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  std::int64_t count = 0;
  std::int64_t missing = 0;
};

// Where a field's values lie in a run, and its sums among all sums.
struct Part {
  bool set;
  bool bits;  // dtype int64: counted, never summed
  std::size_t width;
  std::size_t first;
};

std::vector<Part> parts_of(const std::vector<Field>& fields) {
  std::vector<Part> parts;
  std::size_t first = 0;
  for (const Field& field : fields) {
    const Columns* columns = field.columns();
    std::size_t width = names_of(field).size();
    parts.push_back({columns == nullptr,
                     columns != nullptr && columns->dtype == Dtype::int64,
                     width, first});
    first += width;
  }
  return parts;
}

// Calls take(sum, value) for each value of a row, in order.
template <class Take>
void walk(const std::vector<Part>& parts, std::span<const double> row,
          std::vector<Sum>& sums, Take take) {
  const double* value = row.data();
  for (const Part& part : parts) {
    std::size_t elements = part.set ? static_cast<std::size_t>(*value++) : 1;
    for (std::size_t i = 0; i < elements; ++i)
      for (std::size_t key = 0; key < part.width; ++key)
        take(sums[part.first + key], part.bits ? 0.0 : *value++);
    if (part.bits) value += part.width;
  }
}

// What a range of blocks adds to counts and extremes; their order is no matter.
void merge(const std::vector<Sum>& from, std::vector<Sum>& into) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i].count += from[i].count;
    into[i].missing += from[i].missing;
    into[i].min = std::min(into[i].min, from[i].min);
    into[i].max = std::max(into[i].max, from[i].max);
  }
}

// Calls visit_row(row, is_train, sums) for all rows. Ranges of blocks may be
// visited side by side; the sums of the blocks are added in the order of ids.
template <class VisitRow>
void pass_over(const RowsInOrder& rows, std::vector<Sum>& sums,
               VisitRow visit_row) {
  std::int64_t blocks = (rows.count + kBlockOfIds - 1) / kBlockOfIds;
  std::vector<double> of_block(static_cast<std::size_t>(blocks) * sums.size());
  std::vector<Sum> start = sums;
  for (Sum& sum : start) sum = {.mean = sum.mean, .scale = sum.scale};
  Mutex mutex;
  auto visit_blocks = [&](std::int64_t first, std::int64_t last) {
    std::vector<Sum> own = start;
    for (std::int64_t block = first; block < last; ++block) {
      for (Sum& sum : own) sum.block = 0;
      std::int64_t end = std::min(rows.count, (block + 1) * kBlockOfIds);
      for (std::int64_t id = block * kBlockOfIds; id < end; ++id)
        visit_row(rows.row(id), rows.is_train(id), own);
      double* to =
          of_block.data() + static_cast<std::size_t>(block) * own.size();
      for (const Sum& sum : own) *to++ = sum.block;
    }
    Lock lock(mutex);
    merge(own, sums);
  };
  if (rows.share_out)
    rows.share_out(blocks, visit_blocks);
  else
    visit_blocks(0, blocks);
  for (std::size_t i = 0; i < of_block.size(); ++i)
    sums[i % sums.size()].total += of_block[i];
}

bool overflowed(const Sum& sum) { return !std::isfinite(sum.total); }

// Sums of small parts of the values, for those that were too large.
void add_anew(const std::vector<Part>& parts, const RowsInOrder& rows,
              std::vector<Sum>& sums) {
  std::vector<Sum> small(sums.size());
  pass_over(rows, small, [&](auto row, bool train, std::vector<Sum>& own) {
    if (!train) return;
    walk(parts, row, own, [](Sum& sum, double value) {
      if (!std::isnan(value)) sum.block += value * kSmall;
    });
  });
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!overflowed(sums[i])) continue;
    sums[i].total = small[i].total;
    sums[i].scale = kSmall;
  }
}

void find_means(const std::vector<Part>& parts, const RowsInOrder& rows,
                std::vector<Sum>& sums) {
  pass_over(rows, sums, [&](auto row, bool train, std::vector<Sum>& own) {
    walk(parts, row, own, [train](Sum& sum, double value) {
      bool missing = std::isnan(value);
      sum.missing += missing;
      if (missing || !train) return;
      ++sum.count;
      sum.block += value;
      sum.min = std::min(sum.min, value);
      sum.max = std::max(sum.max, value);
    });
  });
  if (std::ranges::any_of(sums, overflowed)) add_anew(parts, rows, sums);
  for (Sum& sum : sums) {
    if (sum.count == 0) continue;
    sum.mean = sum.total / static_cast<double>(sum.count);
    // Rounding may take the scaled mean of huge values beyond them.
    if (sum.scale != 1)
      sum.mean = std::clamp(sum.mean / sum.scale, sum.min, sum.max);
    if (sum.min == sum.max) sum.mean = sum.min;
    double farthest = std::max(sum.max - sum.mean, sum.mean - sum.min);
    if (farthest > 0 && std::isfinite(farthest))
      sum.scale = std::ldexp(1.0, std::clamp(-std::ilogb(farthest),
                                             -kMostExponent, kMostExponent));
    sum.total = 0;
  }
}

// Leaves the summed squares in `total`, in units of the scale's.
void find_squares(const std::vector<Part>& parts, const RowsInOrder& rows,
                  std::vector<Sum>& sums) {
  pass_over(rows, sums, [&](auto row, bool train, std::vector<Sum>& own) {
    if (!train) return;
    walk(parts, row, own, [](Sum& sum, double value) {
      double off = (value - sum.mean) * sum.scale;
      if (!std::isnan(value)) sum.block += off * off;
    });
  });
}

void set_standard(const Field& field, const Sum& sum, Standard& standard) {
  standard.count = sum.count;
  standard.missing = sum.missing;
  if (!standard.standardize || sum.count == 0) return;
  standard.mean = sum.mean;
  if (sum.min == sum.max) return;
  if (!std::isfinite(sum.max - sum.mean) || !std::isfinite(sum.mean - sum.min))
    throw Error(ErrorKind::transform,
                {.code = "transform.range",
                 .what = "cannot standardise values this far apart",
                 .where = place_of(field, standard.name),
                 .why = "their distance from the mean is beyond float64; they "
                        "run from " +
                        Json(sum.min).dump() + " to " + Json(sum.max).dump(),
                 .next = "check the data, or leave out the rows with these "
                         "values by 'where'"});
  standard.deviation =
      std::sqrt(sum.total / static_cast<double>(sum.count)) / sum.scale;
  // So close together that float64 has no such deviation: as good as a
  // constant.
  if (standard.deviation > 0) standard.divisor = standard.deviation;
}

}  // namespace

Fitted fit(const std::vector<Field>& fields, const Seen& seen,
           const std::vector<std::vector<bool>>& boolean_columns,
           const RowsInOrder& rows) {
  Fitted fitted{empty_standards(fields, seen, boolean_columns)};
  std::vector<Part> parts = parts_of(fields);
  std::vector<Sum> sums(
      parts.empty() ? 0 : parts.back().first + parts.back().width);
  find_means(parts, rows, sums);
  if (std::ranges::any_of(fields, &Field::standardize))
    find_squares(parts, rows, sums);
  for (std::size_t f = 0; f < fields.size(); ++f)
    for (std::size_t i = 0; i < fitted.fields[f].size(); ++i)
      set_standard(fields[f], sums[parts[f].first + i], fitted.fields[f][i]);
  return fitted;
}

}  // namespace penstock
