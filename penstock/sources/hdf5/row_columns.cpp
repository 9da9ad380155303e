#include "penstock/sources/hdf5/row_columns.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "penstock/base/error.h"
#include "penstock/sources/files/column_lengths.h"
#include "penstock/sources/hdf5/attribute_columns.h"
#include "penstock/sources/hdf5/pytables.h"

namespace penstock::hdf5 {
namespace {

using Is = ValueType::Is;

Error failed(const char* code, std::string where, std::string why,
             std::string next) {
  return Error(ErrorKind::source, {.code = code,
                                   .what = "cannot read the rows",
                                   .where = std::move(where),
                                   .why = std::move(why),
                                   .next = std::move(next)});
}

bool is_below(const std::string& path, const std::string& group) {
  return group == "/" || path == group || path.starts_with(group + "/");
}

/// Why the values of a data set cannot be reached; empty: they can.
LeftOutColumn unreadable(const IndexedFile& file, const DataSet& set) {
  if (set.layout == DataSet::Layout::other)
    return {set.path, set.why,
            "write the data set again with h5repack (-l CHUNK=... makes "
            "smaller chunks)"};
  if (set.layout == DataSet::Layout::chunked) {
    const FilterFault fault = fault_of(set.filters);
    if (!fault.why.empty()) return {set.path, fault.why, fault.next};
  }
  for (const Mapping& mapping : set.mappings) {
    const IndexedFile* there = file.file_of(mapping);
    const DataSet* source =
        there == nullptr ? nullptr : there->index.find(mapping.path);
    if (source == nullptr)
      return {set.path,
              "the virtual data set maps " + mapping.path + " in '" +
                  mapping.file + "', which does not exist",
              "put that file back next to this one"};
    if (source->layout == DataSet::Layout::mapped)
      return {set.path,
              "the virtual data set maps another virtual data set, " +
                  mapping.path + " in '" + mapping.file + "'",
              "map the data sets of the other one directly"};
    if (there != &file && is_in_heap(set.type))
      return {set.path,
              "the virtual data set has values of variable length in "
              "other files",
              "name the mapped files as source.path"};
    const RowView here{.file = &file, .set = &set};
    const RowView other{.file = there, .set = source};
    if (source->dims.empty() || other.item() != here.item() ||
        !lie_alike(source->type, set.type) ||
        mapping.from + mapping.rows > other.rows())
      return {set.path,
              "the virtual data set maps " + mapping.path + " in '" +
                  mapping.file +
                  "', whose shape or type differs from what the virtual data "
                  "set expects",
              "write the virtual data set again with the type and shape of the "
              "data that it maps"};
    LeftOutColumn fault = unreadable(*there, *source);
    if (!fault.why.empty()) return {set.path, fault.why, fault.next};
  }
  return {};
}

// Decides what a row is. All columns that are read together have one length,
// `found_.rows`: that of the largest data set in bytes, or of the windows of
// the largest one where windows are asked for, or of the ragged rows where
// source.ragged is given. Data sets of other lengths stay in `found_.columns`
// with their own `rows`, to be named in a job; of_length() then chooses again.
//
// `found_.leading` is the data set that sets the boundaries of chunks, as
// reading it costs the most. Views point into `file_`, which each column keeps
// alive.
class Finder {
 public:
  Finder(const std::shared_ptr<const IndexedFile>& file,
         const RowSettings& settings, RawReader& reader)
      : file_(file),
        settings_(settings),
        reader_(reader),
        reversed_(settings.last || (file->index.matlab && !settings.first)) {}

  RowColumns find() {
    if (settings_.samples == RowSettings::Samples::rows)
      find_rows();
    else
      find_samples();
    for (const auto& [path, why] : file_->index.skipped)
      found_.refused.push_back({path, why, "choose another column"});
    return std::move(found_);
  }

 private:
  struct Candidate {
    RowView view;
    std::vector<ValuePlan> plans = {};
    files::Windows windows = {};

    std::int64_t rows() const { return windows.count(view.rows()); }
  };

  const std::string* offsets_of(const std::string& path) const {
    for (const auto& [values, offsets] : settings_.ragged)
      if (values == path) return &offsets;
    return nullptr;
  }
  files::Windows windows_of(const std::string& path) const {
    for (const WindowsOf& one : settings_.windows)
      if (one.path == path) return one.windows;
    return {};
  }
  bool is_offsets(const std::string& path) const {
    return std::ranges::any_of(
        settings_.ragged, [&](const auto& one) { return one.second == path; });
  }

  /// A row's shape. Columns of MATLAB have a second dimension of one.
  std::vector<std::int64_t> item_of(const RowView& view) const {
    std::vector<std::int64_t> item = view.item();
    if (view.reversed && item.size() == 1 && item[0] == 1) item.clear();
    return item;
  }

  void find_rows() {
    std::vector<Candidate> candidates;
    std::vector<std::string> indexes;
    for (const auto& [group, attributes] : file_->index.groups)
      if (is_index_of_pytables(attributes) &&
          is_below(group, settings_.group)) {
        indexes.push_back(group);
        found_.refused.push_back(
            {group, "the group is an index that PyTables keeps for a table",
             "name the table"});
      }
    auto is_index = [&](const DataSet& set) {
      return std::ranges::any_of(indexes, [&](const std::string& group) {
        return is_below(set.path, group);
      });
    };
    for (const DataSet& set : file_->index.sets) {
      if (!is_below(set.path, settings_.group) || is_index(set)) continue;
      LeftOutColumn fault = unreadable(*file_, set);
      if (fault.why.empty() && set.dims.empty())
        fault = {set.path, "the data set is a single value, without rows",
                 "an attribute that is one number or text is a column"};
      if (!fault.why.empty()) {
        found_.refused.push_back(std::move(fault));
        continue;
      }
      Candidate one{
          .view = {.file = file_.get(), .set = &set, .reversed = reversed_}};
      if (one.view.rows() > 0 && one.view.values() == 0) {
        found_.refused.push_back({set.path,
                                  "the " + std::to_string(one.view.rows()) +
                                      " rows of the data set hold no values (" +
                                      text_of(set.dims) + ")",
                                  "choose another data set"});
        continue;
      }
      const bool is_cut = offsets_of(set.path) != nullptr;
      if (!is_cut) one.windows = windows_of(set.path);
      std::vector<std::int64_t> item = item_of(one.view);
      if (one.windows) item.insert(item.begin(), one.windows.length);
      plan_values(set.path, with_columns_of_pandas(set), item, one.plans,
                  found_.refused);
      unpack_by_attributes(set, file_->data.path + ", " + set.path, one.plans);
      if (is_cut)
        add_cut(one);
      else if (!one.plans.empty() && !is_offsets(set.path))
        candidates.push_back(std::move(one));
    }
    choose_rows(candidates);
    for (Candidate& one : candidates) add_set(one);
    add_constants(file_->index.attributes_of(settings_.group), "", found_);
  }

  void choose_rows(const std::vector<Candidate>& candidates) {
    const Candidate* largest = nullptr;
    for (const Candidate& one : candidates) {
      auto size = [](const Candidate& c) {
        return std::pair(static_cast<bool>(c.windows),
                         c.view.rows() * c.view.row_bytes());
      };
      if (largest == nullptr || size(one) > size(*largest)) largest = &one;
    }
    if (largest == nullptr && found_.columns.empty()) throw no_rows();
    if (largest != nullptr) {
      found_.leading = largest->view;
      found_.windows = largest->windows;
    }
    if (found_.columns.empty()) found_.rows = largest->rows();
  }

  Error no_rows() const {
    LeftOutColumn first{
        .next =
            "list the content of the file with h5dump -H FILE, or name "
            "another group as source.group"};
    if (!found_.refused.empty())
      first = found_.refused[0];
    else if (!file_->index.skipped.empty())
      std::tie(first.name, first.why) = file_->index.skipped[0];
    return failed(
        "hdf5.no_rows", file_->data.path + ", " + settings_.group,
        "the group has no data set that can be read as rows" +
            (first.why.empty() ? std::string()
                               : "; " + first.name + ": " + first.why),
        first.next);
  }

  void add_set(Candidate& one) {
    const DataSet& set = *one.view.set;
    for (ValuePlan& plan : one.plans) {
      RowColumn column{.column = file_column(plan),
                       .plan = plan,
                       .file = file_,
                       .view = one.view,
                       .windows = one.windows,
                       .rows = one.rows()};
      found_.columns.push_back(std::move(column));
    }
    if (one.rows() == found_.rows)
      add_constants(&set.attributes, set.path, found_);
  }

  // The offsets are n + 1 ascending numbers for n rows, as in Arrow's and
  // SciPy's (CSR "indptr") layouts: row r has the values from offset r to
  // offset r + 1. They are read once, here, and checked here, so that readers
  // may rely on them.
  void add_cut(const Candidate& one) {
    const std::string& name = *offsets_of(one.view.set->path);
    const DataSet* set = file_->index.find(name);
    auto refuse = [&](std::string why) {
      return failed("hdf5.offsets", file_->data.path + ", " + name,
                    std::move(why),
                    "set source.ragged to {\"VALUES\": \"OFFSETS\"}: for n "
                    "rows, OFFSETS has n + 1 ascending integers");
    };
    if (set == nullptr) throw refuse("there is no such data set");
    const RowView view{.file = file_.get(), .set = set};
    if (set->type.is != Is::integer || set->dims.size() != 1 ||
        set->dims[0] < 1 || !unreadable(*file_, *set).why.empty())
      throw refuse("the data set is not a list of integers");
    if (one.plans.size() != 1 || one.plans[0].at != 0 ||
        one.view.set->type.is == Is::compound)
      throw refuse(one.view.set->path + " does not hold numbers");
    RawRows raw = reader_.read(view, 0, view.rows());
    if (!raw.bad.empty()) throw refuse(raw.bad[0].why);
    Column numbers = numbers_of(set->type, std::move(raw), view.rows());
    auto offsets = std::make_shared<std::vector<std::int64_t>>();
    for (std::int64_t row = 0; row < numbers.length; ++row) {
      const std::int64_t at = numbers.as_int64(row);
      if (at < (offsets->empty() ? 0 : offsets->back()) || at > one.view.rows())
        throw refuse("offset " + std::to_string(row) + " is " +
                     std::to_string(at) + ", but there are " +
                     std::to_string(one.view.rows()) + " values");
      offsets->push_back(at);
    }
    const std::int64_t rows = std::ssize(*offsets) - 1;
    if (found_.columns.empty()) found_.rows = rows;
    RowColumn column{.from = RowColumn::From::cut,
                     .plan = one.plans[0],
                     .file = file_,
                     .view = one.view,
                     .rows = rows,
                     .offsets = std::move(offsets)};
    column.plan.column = ColumnType::list;
    column.plan.numbers = one.plans[0].packed.dtype;
    column.plan.declared = "list of " + one.plans[0].type.shown();
    column.column = file_column(column.plan);
    found_.columns.push_back(std::move(column));
  }

  // --- a group or a data set for each row ---

  // One pass over the index, whose paths come in the order of names: O(n log n)
  // for n data sets. A column is what has the same path inside its row ("/x" in
  // each group); rows that lack it have a null pointer in its list. Data sets
  // in the group itself (or, for `data_sets`, deeper ones) are not rows and are
  // left out.
  void find_samples() {
    const bool groups = settings_.samples == RowSettings::Samples::groups;
    const std::string prefix =
        settings_.group == "/" ? "/" : settings_.group + "/";
    std::map<std::string, std::size_t> rows;  // by name
    std::vector<std::string> names;
    std::vector<std::pair<std::size_t, const DataSet*>> sets;
    std::vector<std::string> inside;  // by entry of `sets`
    for (const DataSet& set : file_->index.sets) {
      if (!set.path.starts_with(prefix)) continue;
      const std::string rest = set.path.substr(prefix.size());
      const std::size_t slash = rest.find('/');
      if (groups == (slash == rest.npos)) continue;
      const std::string name = rest.substr(0, slash);
      auto [at, fresh] = rows.emplace(name, names.size());
      if (fresh) names.push_back(name);
      sets.emplace_back(at->second, &set);
      inside.push_back(groups ? rest.substr(slash) : "data");
    }
    if (names.empty())
      throw failed(
          "hdf5.no_rows", file_->data.path + ", " + settings_.group,
          groups ? "the group contains no groups with data sets"
                 : "the group contains no data sets",
          "list the content of the file with h5dump -H FILE, or name another "
          "group as source.group");
    found_.rows = std::ssize(names);
    found_.row_bytes.assign(names.size(), 0);
    std::map<std::string, std::vector<const DataSet*>> columns;
    for (std::size_t at = 0; at < sets.size(); ++at) {
      auto& column = columns[inside[at]];
      column.resize(names.size(), nullptr);
      column[sets[at].first] = sets[at].second;
      std::int64_t bytes = sets[at].second->type.bytes;
      for (std::int64_t size : sets[at].second->dims) bytes *= size;
      found_.row_bytes[sets[at].first] += bytes;
    }
    for (auto& [name, of_rows] : columns) add_samples(name, of_rows);
    add_names(names);
    add_sample_attributes(names, prefix, groups);
  }

  /// Values of both can be one column. Texts of a fixed size are filled up.
  static bool agree(const DataSet& a, const DataSet& b) {
    ValueType type = a.type;
    if (type.is == Is::text) type.bytes = b.type.bytes;
    const Dtype dtype = dtype_of(type);
    return lie_alike(type, b.type) &&
           files::packed_by(a.attributes, a.singles, dtype, a.path) ==
               files::packed_by(b.attributes, b.singles, dtype, b.path);
  }

  void add_samples(const std::string& name,
                   const std::vector<const DataSet*>& sets) {
    const DataSet* first = nullptr;
    bool equal = true;
    for (const DataSet* set : sets) {
      if (set == nullptr) {
        equal = false;
        continue;
      }
      if (first == nullptr) first = set;
      LeftOutColumn fault = unreadable(*file_, *set);
      if (fault.why.empty() && !agree(*set, *first))
        fault.why = set->path + " holds " + set->type.shown() + ", and " +
                    first->path + " " + first->type.shown() +
                    (set->type.shown() == first->type.shown()
                         ? " with another layout or other packing attributes"
                         : "");
      if (!fault.why.empty()) {
        found_.refused.push_back(
            {name, fault.why,
             fault.next.empty() ? "write them with one type" : fault.next});
        return;
      }
      equal = equal && set->dims == first->dims;
    }
    std::vector<ValuePlan> plans;
    ValueType type = first->type;
    for (const DataSet* set : sets)
      if (set != nullptr) type.bytes = std::max(type.bytes, set->type.bytes);
    plan_values(name, type, equal ? first->dims : std::vector<std::int64_t>(),
                plans, found_.refused);
    unpack_by_attributes(*first, file_->data.path + ", " + first->path, plans);
    for (ValuePlan& plan : plans) {
      if (!equal && plan.column.kind == ColumnKind::number) {
        plan.numbers = plan.packed.dtype;
        plan.column = ColumnType::list;
        plan.declared = "list of " + plan.declared;
      } else if (!equal || plan.column.kind == ColumnKind::list ||
                 first->type.is == Is::compound) {
        if (!equal || first->type.is == Is::compound) {
          found_.refused.push_back({plan.name,
                                    "the column holds " + first->type.shown() +
                                        " of different shapes",
                                    "choose another column"});
          continue;
        }
      }
      found_.columns.push_back({.column = file_column(plan),
                                .from = RowColumn::From::samples,
                                .plan = plan,
                                .file = file_,
                                .sets = sets});
    }
  }

  void add_names(const std::vector<std::string>& names) {
    RowColumn column = constant("name", Json(""));
    column.from = RowColumn::From::values;
    column.column.declared = "text (of a row)";
    column.values.assign(names.begin(), names.end());
    found_.columns.push_back(std::move(column));
  }

  /// Why an attribute of each row is no column; empty: it is.
  static std::string attribute_fault(const std::vector<Json>& of_rows) {
    const auto list = std::ranges::find_if(
        of_rows, [](const Json& value) { return value.is_array(); });
    for (const Json& value : of_rows) {
      if (value.is_object()) return value.find("why")->string();
      if (list == of_rows.end()) continue;
      if (!value.is_array() || value.array().size() != list->array().size())
        return "the attribute is a list of numbers that other rows lack or "
               "have with another length";
    }
    return {};
  }

  void add_sample_attributes(const std::vector<std::string>& names,
                             const std::string& prefix, bool groups) {
    std::map<std::string, std::vector<Json>> values;
    for (std::size_t row = 0; row < names.size(); ++row) {
      const std::string path = prefix + names[row];
      const DataSet* set = groups ? nullptr : file_->index.find(path);
      const Json* of = groups           ? file_->index.attributes_of(path)
                       : set == nullptr ? nullptr
                                        : &set->attributes;
      if (of == nullptr) continue;
      for (const auto& [name, value] : of->object()) {
        if (!groups && is_technical(name, *of)) continue;
        auto& column = values[name];
        column.resize(names.size());
        column[row] = value;
      }
    }
    for (auto& [name, of_rows] : values) {
      const Json* some = nullptr;
      const std::string why = attribute_fault(of_rows);
      if (!why.empty()) {
        found_.refused.push_back(not_read("@" + name, why));
        continue;
      }
      for (const Json& value : of_rows)
        if (!value.is_null() && (some == nullptr || !is_whole(value)))
          some = &value;
      RowColumn column = constant("@" + name, *some);
      column.from = RowColumn::From::values;
      column.values = std::move(of_rows);
      found_.columns.push_back(std::move(column));
    }
  }

  const std::shared_ptr<const IndexedFile> file_;
  const RowSettings& settings_;
  RawReader& reader_;
  const bool reversed_;
  RowColumns found_;
};

}  // namespace

RowSettings row_settings_of(const FileSettings& settings) {
  RowSettings rows;
  if (!settings.group.empty()) rows.group = settings.group;
  if (!rows.group.starts_with('/')) rows.group = "/" + rows.group;
  while (rows.group.size() > 1 && rows.group.ends_with('/'))
    rows.group.pop_back();
  rows.samples = settings.samples == "groups" ? RowSettings::Samples::groups
                 : settings.samples == "data_sets" ? RowSettings::Samples::sets
                                                   : RowSettings::Samples::rows;
  rows.last = settings.axis == "last";
  rows.first = settings.axis == "first";
  rows.ragged = settings.ragged;
  return rows;
}

RowColumns columns_of(const std::shared_ptr<const IndexedFile>& file,
                      const RowSettings& settings, RawReader& reader) {
  return Finder(file, settings, reader).find();
}

std::optional<RowColumns> of_length(const RowColumns& all,
                                    const std::vector<std::size_t>& read,
                                    const std::string& place) {
  std::vector<files::ColumnLength> lengths;
  RowView leading;
  files::Windows windows;
  auto size = [](const RowView& view, const files::Windows& cut) {
    return std::pair(static_cast<bool>(cut),
                     view.set == nullptr ? -1 : view.rows() * view.row_bytes());
  };
  for (std::size_t at : read) {
    const RowColumn& column = all.columns[at];
    if (column.rows < 0) continue;
    lengths.push_back(
        {column.column.name, column.rows, static_cast<bool>(column.windows)});
    if (column.from != RowColumn::From::set ||
        size(column.view, column.windows) <= size(leading, windows))
      continue;
    leading = column.view;
    windows = column.windows;
  }
  if (lengths.empty()) return std::nullopt;
  if (const files::LengthGroups groups(lengths); !groups.agree())
    throw Error(ErrorKind::source,
                {.code = "hdf5.lengths",
                 .what = "cannot read these data sets side by side",
                 .where = place,
                 .why = groups.shown(),
                 .next = "name data sets of one length, or read windows of "
                         "both"});
  if (lengths[0].rows == all.rows) return std::nullopt;
  RowColumns chosen = all;
  chosen.rows = lengths[0].rows;
  chosen.leading = leading;
  chosen.windows = windows;
  return chosen;
}

std::vector<LeftOutColumn> of_other_lengths(const RowColumns& columns) {
  std::vector<files::ColumnLength> lengths;
  for (const RowColumn& one : columns.columns)
    if (one.rows >= 0) lengths.push_back({one.column.name, one.rows});
  const files::LengthGroups groups(lengths);
  std::vector<LeftOutColumn> others;
  for (const files::ColumnLength& one : lengths)
    if (one.rows != columns.rows)
      others.push_back({one.name, groups.why_left_out(one, columns.rows),
                        files::kNameOneLength});
  return others;
}

void add_columns(const RowColumns& other, std::int64_t first, RowColumns& to) {
  for (RowColumn column : other.columns) {
    if (column.rows >= 0 && column.rows != other.rows) continue;
    if (std::ranges::any_of(to.columns, [&](const RowColumn& own) {
          return own.column.name == column.column.name;
        }))
      continue;
    column.first = first;
    if (column.rows >= 0) column.rows = to.rows;
    to.columns.push_back(std::move(column));
  }
}

}  // namespace penstock::hdf5
