#include "penstock/transforms/json_set/json_set.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "penstock/base/settings.h"
#include "penstock/transforms/json_set/key_types.h"
#include "penstock/transforms/json_set/set_reader.h"
#include "penstock/transforms/kinds.h"
#include "penstock/transforms/number_encoder.h"

namespace penstock {
namespace {

std::size_t numbers_in(ValueRow row) { return row.size() / sizeof(double); }

// The bytes after a row's text that belong to the same buffer.
std::size_t readable_behind(const Column& column, std::string_view text) {
  auto* end = reinterpret_cast<const char*>(column.values.data()) +
              column.values.size();
  auto left = static_cast<std::size_t>(end - (text.data() + text.size()));
  return left + (column.values.owned() ? Bytes::kPadding : 0);
}

class Parser final : public FieldParser {
 public:
  Parser(const JsonSet& set, std::size_t column)
      : column_name_(set.column),
        column_(column),
        reader_(set),
        types_(reader_.numeric()) {}

  void parse(const Block& block, Values& out, Faults& faults) override {
    const Column& column = block.columns[column_];
    PENSTOCK_ASSERT(column.type.is_text(), "a json_set is made of text");
    types_.start();
    for (std::int64_t row = 0; row < block.rows; ++row) {
      if (parse_row(column, row, faults)) reader_.append_to(out.bytes);
      out.end_row();
      types_.add(reader_.elements());
    }
  }

  void keep(std::span<const std::int64_t> rows, const KeyList& keys) override {
    types_.keep(rows, keys);
    notes_ = types_.take(keys);
  }

  std::unique_ptr<FieldNotes> take_notes() override {
    return std::move(notes_);
  }

 private:
  bool parse_row(const Column& column, std::int64_t row, Faults& faults) {
    auto reject = [&](JsonFault fault) {
      faults.reject({.row = row,
                     .place = column_name_,
                     .why = std::move(fault.why),
                     .byte = fault.byte});
      return false;
    };
    if (!column.valid(row))
      return reject({-1, "is NULL, expected a list of objects"});
    std::string_view text = column.text(row);
    if (auto fault = reader_.read(text, readable_behind(column, text)))
      return reject(std::move(*fault));
    if (!reader_.too_short()) return true;
    faults.leave_out(row);
    return false;
  }

  const std::string column_name_;
  const std::size_t column_;
  SetReader reader_;
  KeyTypeFinder types_;
  std::unique_ptr<FieldNotes> notes_;
};

/// The elements of a run follow their count.
class Elementwise final : public NumberRows {
 public:
  std::span<const double> numbers(ValueRow row) override {
    auto* run = reinterpret_cast<const double*>(row.data());
    return {run + 1, numbers_in(row) - 1};
  }
  std::unique_ptr<NumberRows> clone() const override {
    return std::make_unique<Elementwise>();
  }
};

class Encoder final : public FieldEncoder {
 public:
  Encoder(NumberEncoder numbers, const std::vector<TensorSpec>& stored)
      : numbers_(std::move(numbers)), values_(stored[0]), mask_(stored[1]) {}

  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults& faults) override {
    std::byte* to = out.data;
    for (std::size_t i = 0; i < rows.size(); ++i, to += out.stride) {
      auto* run = reinterpret_cast<const double*>(rows[i].data());
      auto count = static_cast<std::size_t>(*run);
      encode_elements(run + 1, count, to + values_.offset,
                      static_cast<std::int64_t>(i), faults);
      write_mask(to + mask_.offset, count);
    }
  }

 private:
  void encode_elements(const double* raw, std::size_t count, std::byte* to,
                       std::int64_t row, Faults& faults) {
    std::size_t left = values_.bytes - count * numbers_.bytes();
    for (std::size_t i = 0; i < count; ++i) {
      if (!numbers_.encode(raw, to)) [[unlikely]]
        return faults.reject(numbers_.what_does_not_fit(raw, row));
      raw += numbers_.numbers();
      to += numbers_.bytes();
    }
    std::memset(to, 0, left);
  }

  void write_mask(std::byte* to, std::size_t count) const {
    static constexpr float kPresent = 1;
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(to + i * sizeof(float), &kPresent, sizeof(float));
    std::memset(to + count * sizeof(float), 0,
                mask_.bytes - count * sizeof(float));
  }

  const NumberEncoder numbers_;
  const TensorSpec values_, mask_;
};

FieldFacts facts_of(const std::string& name, const JsonSet& set);

class JsonSetKind final : public FieldKind {
 public:
  JsonSetKind(std::string name, JsonSet set)
      : FieldKind(facts_of(name, set)),
        name_(std::move(name)),
        set_(std::move(set)) {}

  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override;

  const std::string& name() const { return name_; }
  const JsonSet& set() const { return set_; }

 private:
  const std::string name_;
  const JsonSet set_;
};

class BoundJsonSet final : public BoundField {
 public:
  BoundJsonSet(const JsonSetKind& kind, std::size_t column)
      : kind_(kind), column_(column), place_{kind.name(), "key"} {}

  std::unique_ptr<FieldParser> parser() const override {
    return std::make_unique<Parser>(kind_.set(), column_);
  }
  std::unique_ptr<FieldFit> fit(const FieldNotes* notes) const override;
  std::optional<Json> unfitted() const override {
    std::vector<Standardization> numbers;
    for (const std::string& key : kind_.set().keys)
      numbers.push_back({.name = key, .standardize = kind_.set().standardize});
    return unfitted_numbers(numbers);
  }
  bool may_leave_out() const override { return kind_.set().min > 0; }
  std::unique_ptr<FieldEncoder> encoder(
      const Json& statistics, const std::string& path) const override {
    return std::make_unique<Encoder>(
        NumberEncoder(standardizations_from(statistics, kind_.set().keys, path),
                      place_, Dtype::float32),
        kind_.facts().stored.tensors);
  }

 private:
  void refuse_if_mixed(const std::string& name, const KeyTypes::Key& key) const;

  const JsonSetKind kind_;
  const std::size_t column_;
  const NumberPlace place_;
};

void BoundJsonSet::refuse_if_mixed(const std::string& name,
                                   const KeyTypes::Key& key) const {
  if (key.number_row.empty() || key.boolean_row.empty()) return;
  throw Error(ErrorKind::transform,
              {.code = "transform.mixed_types",
               .what = "cannot use a key that holds both numbers and booleans",
               .where = place_.of(name),
               .why = "the row with key " + key.number_row +
                      " holds a number, the row with key " + key.boolean_row +
                      " a boolean",
               .next = "use one type in the data, or name another key"});
}

// The types come before any value is looked at.
std::unique_ptr<FieldFit> BoundJsonSet::fit(const FieldNotes* notes) const {
  static const KeyTypes kNone;
  const auto& types = notes ? static_cast<const KeyTypes&>(*notes) : kNone;
  const JsonSet& set = kind_.set();
  std::vector<Standardization> numbers;
  for (std::size_t i = 0; i < set.keys.size(); ++i) {
    Standardization number{.name = set.keys[i]};
    if (i < types.keys.size()) {
      refuse_if_mixed(set.keys[i], types.keys[i]);
      number.boolean = !types.keys[i].boolean_row.empty();
    }
    number.standardize = set.standardize && !number.boolean;
    numbers.push_back(std::move(number));
  }
  if (types.keys.size() > set.keys.size())
    refuse_if_mixed(set.sort_by, types.keys[set.keys.size()]);
  return fit_numbers(std::move(numbers), place_,
                     std::make_unique<Elementwise>());
}

std::shared_ptr<const BoundField> JsonSetKind::bind(
    FieldColumns columns) const {
  return std::make_shared<BoundJsonSet>(*this, columns.at[0]);
}

// What the parser checks and a schema can express.
Json overflow_rules() {
  return Json::parse(R"([
      {"properties": {"overflow": {"const": "strongest"}},
       "required": ["overflow", "sort_by"]},
      {"properties": {"overflow": {"enum": ["first", "error"]}},
       "not": {"required": ["sort_by"]}}])",
                     "overflow_rules()");
}

void check_set(Spec& section, JsonSet& set) {
  section.integer("min", set.min, 0, set.max);
  bool strongest = set.overflow == JsonSet::Overflow::strongest;
  if (strongest && set.sort_by.empty())
    section.refuse("sort_by",
                   "\"sort_by\" is missing, and \"overflow\" is \"strongest\"",
                   "name the key to sort by, such as \"" + set.keys[0] + "\"");
  if (!strongest && section.has("sort_by"))
    section.refuse(
        "sort_by",
        "\"sort_by\" needs the overflow \"strongest\", but \"overflow\" is \"" +
            section.text("overflow", "first") + "\"",
        "remove \"sort_by\", or set \"overflow\" to \"strongest\"");
}

const SettingsTable<JsonSet>& json_set_settings() {
  using Overflow = JsonSet::Overflow;
  static const SettingsTable<JsonSet> table =
      SettingsTable<JsonSet>()
          .section(
              "json_set",
              SettingsTable<JsonSet>()
                  .text("column", &JsonSet::column,
                        "Column of JSON texts, each a list of objects")
                  .required()
                  .names("keys", &JsonSet::keys,
                         "Keys to take from each object, in the order of the "
                         "tensor's last dimension")
                  .integer("max", &JsonSet::max, 1, 65536,
                           "Greatest number of objects in a row. Shorter lists "
                           "are padded with zeros")
                  .required()
                  .integer("min", &JsonSet::min, 0, 65536,
                           "Least number of objects, at most max. Rows with a "
                           "shorter list are left out")
                  .choice("overflow", &JsonSet::overflow,
                          {{"first", Overflow::first},
                           {"strongest", Overflow::strongest},
                           {"error", Overflow::error}},
                          "What to do with a list longer than max. first: its "
                          "first objects are kept; strongest: those with the "
                          "greatest `sort_by`; error: the row is bad")
                  .text("sort_by", &JsonSet::sort_by,
                        "Key whose greatest values are kept, for the overflow "
                        "\"strongest\"")
                  .texts("required", &JsonSet::required,
                         "Keys that every object must have, not null. A row "
                         "with an object that lacks one is bad")
                  .rule("oneOf", overflow_rules())
                  .check(check_set),
              "Turns a column of JSON lists of objects into float32 [max, "
              "keys] and a mask NAME_mask [max].")
          .required()
          .boolean("standardize", &JsonSet::standardize,
                   "Whether values become (value - mean) / standard deviation "
                   "over the train rows of each key. Booleans stay 0 and 1");
  return table;
}

FieldFacts facts_of(const std::string& name, const JsonSet& set) {
  RowLayout layout;
  layout.append({{.name = name, .row_shape = {set.max, std::ssize(set.keys)}},
                 {.name = name + "_mask", .row_shape = {set.max}}});
  return {.columns = {{.column = set.column,
                       .as = ReadAs::json,
                       .setting = "fields." + name + ".json_set.column"}},
          .stored = {.tensors = std::move(layout.tensors)},
          .recipe = json_set_settings().shown(set),
          .built_in = true,
          .set = SetFacts{.keys = set.keys, .least = set.min}};
}

}  // namespace

std::shared_ptr<const FieldKind> make_json_set(std::string name, JsonSet set) {
  return std::make_shared<JsonSetKind>(std::move(name), std::move(set));
}

FieldDescriptor json_set_field() {
  return describe_field<JsonSet, json_set_settings, make_json_set>("json_set");
}

}  // namespace penstock
