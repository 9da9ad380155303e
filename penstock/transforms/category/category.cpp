#include "penstock/transforms/category/category.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "penstock/base/settings.h"
#include "penstock/transforms/category/vocabulary.h"
#include "penstock/transforms/kinds.h"

// A parsed value is a byte that says whether there is one, and its bytes. The
// classes are counted over the train rows, so that what the other side alone
// has is unknown there, as it would be later. A source that knows the values
// beforehand, as a folder of folders does, needs no row to be counted: all of
// them are classes.

namespace penstock {
namespace {

constexpr char kMissing = 0, kPresent = 1;
constexpr std::int64_t kMostOneHot = 65'536;

const SettingsTable<Category>& category_settings() {
  static const SettingsTable<Category> table =
      SettingsTable<Category>()
          .section(
              "category",
              SettingsTable<Category>()
                  .text("column", &Category::column, "")
                  .required()
                  .not_empty()
                  .integer("min_count", &Category::min_count, 1, INT64_MAX,
                           "train rows that make a class; fewer are unknown")
                  .choice("unknown", &Category::unknown_is_class,
                          {{"class", true}, {"error", false}},
                          "\"class\": what is no class, or missing, is class "
                          "0, and classes begin at 1; \"error\": such a row is "
                          "bad, and classes begin at 0")
                  .choice("order", &Category::by_frequency,
                          {{"sorted", false}, {"frequency", true}}, "")
                  .setting(
                      "one_hot",
                      settings::integer_rule(
                          1, kMostOneHot,
                          "float32 [one_hot], 1 in the place of the class, in "
                          "place of its number"),
                      [](Spec& spec, const SettingSchema& setting,
                         Category& to) {
                        if (spec.raw(setting.key) != nullptr)
                          to.one_hot =
                              spec.integer(setting.key, {}, 1, kMostOneHot);
                      },
                      [](const Category& from) {
                        return from.one_hot > 0 ? Json(from.one_hot) : Json();
                      })
                  .check([](Spec& section, Category& category) {
                    if (!category.unknown_is_class && category.min_count > 1)
                      section.refuse(
                          "min_count",
                          "found " + std::to_string(category.min_count) +
                              ", but unknown is \"error\"",
                          "use \"unknown\": \"class\", which takes the rarer "
                          "values, or leave out min_count");
                  }),
              "A column of texts, integers or booleans -> int64 classes [], or "
              "float32 [one_hot].")
          .required();
  return table;
}

class Parser final : public FieldParser {
 public:
  Parser(const Category& settings, std::size_t column, ClassType type)
      : settings_(settings), column_(column), type_(type) {}

  void parse(const Block& block, Values& out, Faults& faults) override {
    const Column& column = block.columns[column_];
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const bool present = column.valid(row);
      if (!present && !settings_.unknown_is_class)
        faults.reject(
            {.row = row,
             .place = settings_.column,
             .why = "is NULL, expected a class; with \"unknown\": \"class\" "
                    "it is class 0"});
      out.bytes.append_value(present ? kPresent : kMissing);
      if (present) append(column, row, out.bytes);
      out.end_row();
    }
  }

 private:
  void append(const Column& column, std::int64_t row, Bytes& to) const {
    if (column.type.kind == ColumnKind::dictionary)
      return append(column.children[0], column.as_int64(row), to);
    if (type_ == ClassType::text) {
      const std::string_view text = column.text(row);
      to.append(text.data(), text.size());
    } else if (type_ == ClassType::boolean) {
      to.append_value(static_cast<char>(column.boolean(row)));
    } else {
      to.append_value(column.as_int64(row));
    }
  }

  const Category& settings_;
  const std::size_t column_;
  const ClassType type_;
};

/// The value of a parsed row; none where it is missing.
std::optional<std::string_view> value_of(ValueRow row) {
  const std::string_view bytes(reinterpret_cast<const char*>(row.data()),
                               row.size());
  if (bytes[0] == kMissing) return std::nullopt;
  return bytes.substr(1);
}

const char* word_of(ClassType type) {
  return type == ClassType::text      ? "texts"
         : type == ClassType::integer ? "integers"
                                      : "booleans";
}

class Fit final : public FieldFit {
 public:
  Fit(const Category& settings, ClassType type,
      const std::vector<std::string>& known)
      : settings_(settings), type_(type), known_(known) {}

  std::unique_ptr<FieldFit> part() const override {
    return std::make_unique<Fit>(settings_, type_, known_);
  }
  void add(std::span<const ValueRow> rows,
           std::span<const std::uint8_t> train) override {
    seen_.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::optional<std::string_view> value = value_of(rows[i]);
      missing_ += !value;
      missing_in_train_ += !value && train[i] != 0;
      if (value && train[i] != 0) seen_.push_back(*value);
    }
    counts_.add(seen_);
  }
  void read_as(const FieldFit& other) override {
    const ClassType type = static_cast<const Fit&>(other).type_;
    if (type == type_) return;
    throw Error(
        ErrorKind::request,
        {.code = "fields.category",
         .what = "cannot find the classes of several sources",
         .where = "column '" + settings_.column + "'",
         .why = std::string("it holds ") + word_of(type_) +
                " in one of them and " + word_of(type) + " in another",
         .next = "give it one type: \"columns\" of files, a CAST in a query"});
  }
  void merge(FieldFit& later) override {
    auto& from = static_cast<Fit&>(later);
    counts_.add(from.counts_);
    missing_ += from.missing_;
    missing_in_train_ += from.missing_in_train_;
  }
  bool again() override { return false; }
  Json statistics() override {
    for (const std::string& value : known_) counts_.add(value, 0);
    Json json;
    const std::int64_t known = ClassCounts::write(
        counts_.classes(type_, known_.empty() ? settings_.min_count : 0,
                        settings_.by_frequency),
        type_, json);
    json["unknown"] = counts_.total() - known + missing_in_train_;
    json["missing"] = missing_;
    return json;
  }

 private:
  const Category settings_;
  const ClassType type_;
  const std::vector<std::string> known_;  // classes, whatever their count
  ClassCounts counts_;
  std::vector<std::string_view> seen_;  // of a call
  std::int64_t missing_ = 0, missing_in_train_ = 0;
};

class Encoder final : public FieldEncoder {
 public:
  Encoder(const std::string& name, const Category& settings, ClassType type,
          const Json& statistics, const std::string& path)
      : name_(name),
        settings_(settings),
        type_(type),
        vocabulary_(statistics, type, settings.unknown_is_class, path) {
    if (settings_.one_hot > 0) check_width(statistics);
  }

  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults& faults) override {
    values_.resize(rows.size());
    classes_.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      values_[i] = value_of(rows[i]).value_or("");
    vocabulary_.find(values_, classes_);
    std::byte* to = out.data;
    for (std::size_t i = 0; i < rows.size(); ++i, to += out.stride) {
      std::int64_t number = value_of(rows[i]) ? classes_[i] : -1;
      if (number < 0 && !settings_.unknown_is_class)
        reject(values_[i], static_cast<std::int64_t>(i), faults);
      number = std::max<std::int64_t>(number, 0);
      if (settings_.one_hot == 0) {
        std::memcpy(to, &number, sizeof(number));
        continue;
      }
      constexpr float kOne = 1;
      std::memset(to, 0,
                  static_cast<std::size_t>(settings_.one_hot) * sizeof(kOne));
      std::memcpy(to + static_cast<std::size_t>(number) * sizeof(kOne), &kOne,
                  sizeof(kOne));
    }
  }

 private:
  void check_width(const Json& statistics) const {
    const std::int64_t classes =
        std::ssize(statistics.find("classes")->array()) +
        (settings_.unknown_is_class ? 1 : 0);
    if (classes <= settings_.one_hot) return;
    throw Error(
        ErrorKind::request,
        {.code = "fields.one_hot",
         .what = "there are more classes than places",
         .where = "fields." + name_ + ".category.one_hot",
         .why = "found " + std::to_string(classes) + " classes" +
                (settings_.unknown_is_class ? ", with the unknown one" : "") +
                ", and " + std::to_string(settings_.one_hot) + " places",
         .next = "set one_hot to " + std::to_string(classes) +
                 ", or raise min_count"});
  }
  void reject(std::string_view value, std::int64_t row, Faults& faults) const {
    faults.reject(
        {.row = row,
         .place = "field '" + name_ + "', column '" + settings_.column + "'",
         .why = "found " + json_of_class(type_, value).dump() +
                ", which is none of the classes of the train rows",
         .what = "cannot tell the class of a row",
         .next = "use \"unknown\": \"class\", or leave out such rows with "
                 "'source.where'"});
  }

  const std::string name_;
  const Category settings_;
  const ClassType type_;
  const Vocabulary vocabulary_;
  std::vector<std::string_view> values_;  // of the rows of a call
  std::vector<std::int64_t> classes_;
};

class CategoryKind final : public FieldKind {
 public:
  CategoryKind(std::string name, Category category)
      : name_(std::move(name)), category_(std::move(category)) {}

  std::vector<ColumnRequest> columns() const override {
    return {{.column = category_.column,
             .as = ReadAs::value,
             .setting = "fields." + name_ + ".category.column"}};
  }
  StoredForm stored() const override {
    RowLayout layout;
    if (category_.one_hot > 0)
      layout.append({{.name = name_, .row_shape = {category_.one_hot}}});
    else
      layout.append({{.name = name_, .dtype = Dtype::int64, .row_shape = {}}});
    return {.tensors = std::move(layout.tensors)};
  }
  Json recipe() const override { return category_settings().shown(category_); }
  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override;

  const std::string& name() const { return name_; }
  const Category& category() const { return category_; }

 private:
  const std::string name_;
  const Category category_;
};

class BoundCategory final : public BoundField {
 public:
  BoundCategory(const CategoryKind& kind, std::size_t column, ClassType type,
                std::vector<std::string> known)
      : kind_(kind), column_(column), type_(type), known_(std::move(known)) {}

  std::unique_ptr<FieldParser> parser() const override {
    return std::make_unique<Parser>(kind_.category(), column_, type_);
  }
  std::unique_ptr<FieldFit> fit(const FieldNotes*) const override {
    return std::make_unique<Fit>(kind_.category(), type_, known_);
  }
  std::optional<Json> unfitted() const override {
    if (known_.empty()) return std::nullopt;
    Json json;
    json["classes"] = settings::list_of(known_);
    return json;
  }
  std::unique_ptr<FieldEncoder> encoder(
      const Json& statistics, const std::string& path) const override {
    return std::make_unique<Encoder>(kind_.name(), kind_.category(), type_,
                                     statistics, path);
  }

 private:
  const CategoryKind kind_;
  const std::size_t column_;
  const ClassType type_;
  const std::vector<std::string> known_;
};

bool is_floating(Dtype dtype) {
  return dtype == Dtype::float32 || dtype == Dtype::float64 ||
         dtype == Dtype::float16 || dtype == Dtype::bfloat16;
}

/// None where a column's values are no classes.
std::optional<ClassType> class_type(const ColumnType& type,
                                    const ColumnInfo& info) {
  if (info.timestamp || type.logical == ColumnType::Logical::json)
    return std::nullopt;
  if (type.kind == ColumnKind::boolean || info.boolean)
    return type.kind == ColumnKind::boolean ? ClassType::boolean
                                            : ClassType::integer;
  if (type.is_text() || type.kind == ColumnKind::dictionary)
    return ClassType::text;
  if (type.kind == ColumnKind::number && !is_floating(type.dtype))
    return ClassType::integer;
  return std::nullopt;
}

std::shared_ptr<const BoundField> CategoryKind::bind(
    FieldColumns columns) const {
  const ColumnInfo& info = columns.info[0];
  const std::optional<ClassType> type = class_type(columns.types[0], info);
  if (!type)
    throw column_error(
        "fields.category", "fields." + name_ + ".category.column", info,
        columns.types[0], "and classes are texts, integers or booleans",
        "name another column, or use \"columns\" for numbers");
  // Which classes are rare or frequent, only rows can tell.
  const bool by_count = category_.min_count > 1 || category_.by_frequency;
  return std::make_shared<BoundCategory>(
      *this, columns.at[0], *type,
      by_count ? std::vector<std::string>() : info.values);
}

}  // namespace

std::shared_ptr<const FieldKind> make_category(std::string name,
                                               Category category) {
  return std::make_shared<CategoryKind>(std::move(name), std::move(category));
}

FieldDescriptor category_field() {
  return describe_field<Category, category_settings, make_category>("category");
}

const Category* category_of(const Field& field) {
  auto* kind = dynamic_cast<const CategoryKind*>(field.kind.get());
  return kind == nullptr ? nullptr : &kind->category();
}

}  // namespace penstock
