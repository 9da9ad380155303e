#include "penstock/transforms/category/category.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "penstock/base/settings.h"
#include "penstock/base/sync.h"
#include "penstock/transforms/category/parsed_values.h"
#include "penstock/transforms/category/vocabulary.h"
#include "penstock/transforms/kinds.h"

// The classes are counted over the train rows, so that what the other side
// alone has is unknown there, as it would be later. A source that knows the
// values beforehand, as a folder of folders does, needs no row to be counted:
// all of them are classes, in the order that it gives.

namespace penstock {
namespace {

constexpr std::int64_t kMostOneHot = 65'536;

const SettingsTable<Category>& category_settings() {
  static const SettingsTable<Category> table =
      SettingsTable<Category>()
          .section(
              "category",
              SettingsTable<Category>()
                  .text("column", &Category::column,
                        "Column of texts, whole numbers or booleans")
                  .required()
                  .not_empty()
                  .integer("min_count", &Category::min_count, 1, INT64_MAX,
                           "Train rows that a value needs to become a class. "
                           "Rarer values are unknown")
                  .choice(
                      "unknown", &Category::unknown_is_class,
                      // "class" is what it was called while it was the
                      // first: recipes of such rows and runs have that
                      // word.
                      {{"last", true}, {"class", true}, {"error", false}},
                      "What to do with a value that is missing or not a class. "
                      "last, or its older name class: it belongs to an "
                      "additional class, the last; error: the row is bad")
                  .choice(
                      "order", &Category::by_frequency,
                      {{"sorted", false}, {"frequency", true}},
                      "How classes are numbered. sorted: in ascending order of "
                      "their values; frequency: the most frequent first")
                  .setting(
                      "one_hot",
                      settings::integer_rule(
                          1, kMostOneHot,
                          "Length of a one-hot row: float32 [one_hot] with 1 "
                          "at the class instead of an int64 number. Default: "
                          "the number"),
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
                              ", but \"unknown\" is \"error\"",
                          "use \"unknown\": \"last\", which gives rarer values "
                          "a class, or leave out \"min_count\"");
                  }),
              "Turns a column of texts, whole numbers or booleans into int64 "
              "class numbers [], or into float32 [one_hot].")
          .required();
  return table;
}

const char* word_of(ClassType type) {
  return type == ClassType::text      ? "texts"
         : type == ClassType::integer ? "integers"
                                      : "booleans";
}

class Fit final : public FieldFit {
 public:
  Fit(const Category& settings, ClassType type,
      const std::vector<std::string>& known, Codes codes)
      : settings_(settings),
        type_(type),
        known_(known),
        codes_(std::move(codes)) {}

  std::unique_ptr<FieldFit> part() const override {
    return std::make_unique<Fit>(settings_, type_, known_, codes_);
  }
  void add(std::span<const ValueRow> rows,
           std::span<const std::uint8_t> train) override {
    seen_.clear();
    seen_elsewhere_.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::optional<std::string_view> value = value_of(rows[i], codes_);
      missing_ += !value;
      missing_in_train_ += !value && train[i] != 0;
      if (value) (train[i] != 0 ? seen_ : seen_elsewhere_).push_back(*value);
    }
    counts_.add(seen_);
    // Elsewhere a row that has no class is bad, and need not be counted.
    if (settings_.unknown_is_class) elsewhere_.add(seen_elsewhere_);
  }
  void read_as(const FieldFit& other) override {
    codes_ = static_cast<const Fit&>(other).codes_;
    const ClassType type = static_cast<const Fit&>(other).type_;
    if (type == type_) return;
    throw Error(ErrorKind::request,
                {.code = "fields.category",
                 .what = "cannot find the classes of several sources",
                 .where = "column '" + settings_.column + "'",
                 .why = std::string("the column holds ") + word_of(type_) +
                        " in one source and " + word_of(type) + " in another",
                 .next = "give the column one type: with \"columns\" for "
                         "files, or a CAST in a query"});
  }
  void merge(FieldFit& later) override {
    auto& from = static_cast<Fit&>(later);
    counts_.take(from.counts_);
    elsewhere_.take(from.elsewhere_);
    missing_ += from.missing_;
    missing_in_train_ += from.missing_in_train_;
  }
  bool again() override { return false; }
  Json statistics() override {
    for (const std::string& value : known_) counts_.add(value, 0);
    Json json;
    std::vector<ClassCounts::Counted> classes =
        counts_.classes(type_, known_.empty() ? settings_.min_count : 0,
                        settings_.by_frequency);
    if (!std::ranges::is_sorted(known_)) bring_into_order(classes);
    const std::int64_t known = ClassCounts::write(classes, type_, json);
    json["unknown"] = counts_.total() - known + missing_in_train_;
    json["missing"] = missing_;
    if (!settings_.unknown_is_class) return json;
    std::int64_t unknown = elsewhere_.total() + missing_ - missing_in_train_;
    for (const auto& [value, count] : classes)
      unknown -= elsewhere_.count_of(value);
    json["unknown_elsewhere"] = unknown;
    return json;
  }

 private:
  /// That of the classes that are known; what another source holds comes last.
  void bring_into_order(std::vector<ClassCounts::Counted>& classes) const {
    std::unordered_map<std::string_view, std::size_t> places;
    for (const std::string& value : known_)
      places.emplace(value, places.size());
    auto place = [&](const ClassCounts::Counted& of) {
      const auto found = places.find(of.value);
      return found == places.end() ? places.size() : found->second;
    };
    std::ranges::stable_sort(classes, {}, place);
  }

  const Category settings_;
  const ClassType type_;
  const std::vector<std::string> known_;  // classes, whatever their count
  Codes codes_;                           // of the rows that are added
  ClassCounts counts_;                    // of train rows
  ClassCounts elsewhere_;                 // of all others
  std::vector<std::string_view> seen_, seen_elsewhere_;  // of a call
  std::int64_t missing_ = 0, missing_in_train_ = 0;
};

class Encoder final : public FieldEncoder {
 public:
  Encoder(const std::string& name, const Category& settings, ClassType type,
          Codes codes, const Json& statistics,
          std::shared_ptr<const Vocabulary> vocabulary)
      : name_(name),
        settings_(settings),
        type_(type),
        codes_(std::move(codes)),
        vocabulary_(std::move(vocabulary)),
        unknown_(vocabulary_->size()) {
    if (settings_.one_hot > 0) check_width(statistics);
    if (codes_ == nullptr) return;
    values_.assign(codes_->begin(), codes_->end());
    class_of_code_.resize(values_.size());
    vocabulary_->find(values_, class_of_code_);
  }

  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults& faults) override {
    find_classes(rows);
    std::byte* to = out.data;
    for (std::size_t i = 0; i < rows.size(); ++i, to += out.stride) {
      std::int64_t number = classes_[i];
      if (number < 0 && !settings_.unknown_is_class)
        reject(value_of(rows[i], codes_).value_or(""),
               static_cast<std::int64_t>(i), faults);
      if (number < 0) number = settings_.unknown_is_class ? unknown_ : 0;
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
  /// Of these rows; -1: missing, or none.
  /// With codes, the class of each code is looked up once when the encoder is
  /// made, and a row costs one read. Without, all values of a call are looked
  /// up together, while the memory answers.
  void find_classes(std::span<const ValueRow> rows) {
    classes_.assign(rows.size(), -1);
    if (codes_ != nullptr) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (const std::int32_t code = code_in(rows[i]); code != kNoCode)
          classes_[i] = class_of_code_[static_cast<std::size_t>(code)];
      return;
    }
    values_.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      values_[i] = value_of(rows[i], codes_).value_or("");
    vocabulary_->find(values_, classes_);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!value_of(rows[i], codes_)) classes_[i] = -1;
  }
  void check_width(const Json& statistics) const {
    const std::int64_t classes =
        std::ssize(statistics.find("classes")->array()) +
        (settings_.unknown_is_class ? 1 : 0);
    if (classes <= settings_.one_hot) return;
    throw Error(
        ErrorKind::request,
        {.code = "fields.one_hot",
         .what = "\"one_hot\" is smaller than the number of classes",
         .where = "fields." + name_ + ".category.one_hot",
         .why = "found " + std::to_string(classes) + " classes" +
                (settings_.unknown_is_class ? ", including the unknown class"
                                            : "") +
                ", but \"one_hot\" is " + std::to_string(settings_.one_hot),
         .next = "set one_hot to " + std::to_string(classes) +
                 ", or raise min_count"});
  }
  void reject(std::string_view value, std::int64_t row, Faults& faults) const {
    faults.reject({.row = row,
                   .place = settings_.column,
                   .why = "found " + json_of_class(type_, value).dump() +
                          ", which is not a class of the train rows",
                   .what = "cannot determine the class of a row",
                   .next =
                       "use \"unknown\": \"last\", or leave out such rows with "
                       "'source.where'"});
  }

  const std::string name_;
  const Category settings_;
  const ClassType type_;
  const Codes codes_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const std::int64_t unknown_;  // class
  std::vector<std::int64_t> class_of_code_;
  // Of the rows of a call.
  std::vector<std::string_view> values_;
  std::vector<std::int64_t> classes_;
};

/// Which classes are rare or frequent, only rows can tell.
bool by_count(const Category& category) {
  return category.min_count > 1 || category.by_frequency;
}

FieldFacts facts_of(const std::string& name, const Category& category) {
  RowLayout layout;
  if (category.one_hot > 0)
    layout.append({{.name = name, .row_shape = {category.one_hot}}});
  else
    layout.append({{.name = name, .dtype = Dtype::int64, .row_shape = {}}});
  return {.columns = {{.column = category.column,
                       .as = ReadAs::value,
                       .setting = "fields." + name + ".category.column",
                       .coded = !by_count(category)}},
          .stored = {.tensors = std::move(layout.tensors)},
          .recipe = category_settings().shown(category),
          .built_in = true,
          .classes = ClassFacts{.unknown = category.unknown_is_class,
                                .one_hot = category.one_hot > 0}};
}

class CategoryKind final : public FieldKind {
 public:
  CategoryKind(std::string name, Category category)
      : FieldKind(facts_of(name, category)),
        name_(std::move(name)),
        category_(std::move(category)) {}

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
                std::vector<std::string> known, Codes codes)
      : kind_(kind),
        column_(column),
        type_(type),
        known_(std::move(known)),
        codes_(std::move(codes)) {}

  std::unique_ptr<FieldParser> parser() const override {
    const Category& settings = kind_.category();
    return category_parser({.name = settings.column,
                            .at = column_,
                            .type = type_,
                            .codes = codes_,
                            .takes_missing = settings.unknown_is_class});
  }
  std::unique_ptr<FieldFit> fit(const FieldNotes*) const override {
    return std::make_unique<Fit>(kind_.category(), type_, known_, codes_);
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
                                     codes_, statistics,
                                     vocabulary_of(statistics, path));
  }

 private:
  /// One for all encoders of the same classes: there may be millions.
  std::shared_ptr<const Vocabulary> vocabulary_of(
      const Json& statistics, const std::string& path) const {
    Lock lock(mutex_);
    if (vocabulary_ == nullptr || !vocabulary_->is_of(statistics))
      vocabulary_ = std::make_shared<const Vocabulary>(statistics, type_, path);
    return vocabulary_;
  }

  const CategoryKind kind_;
  const std::size_t column_;
  const ClassType type_;
  const std::vector<std::string> known_;
  const Codes codes_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const Vocabulary> vocabulary_
      PENSTOCK_GUARDED_BY(mutex_);  // of the last encoder
};

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
  if (type.kind == ColumnKind::number) return ClassType::integer;
  return std::nullopt;
}

std::shared_ptr<const BoundField> CategoryKind::bind(
    FieldColumns columns) const {
  const ColumnInfo& info = columns.info[0];
  const std::optional<ClassType> type = class_type(columns.types[0], info);
  if (!type)
    throw column_error(
        "fields.category", "fields." + name_ + ".category.column", info,
        columns.types[0], "but classes are texts, integers or booleans",
        "name another column, or use \"columns\" for numbers");
  Codes codes;
  if (type == ClassType::integer && !info.values.empty())
    codes = std::make_shared<const std::vector<std::string>>(info.values);
  return std::make_shared<BoundCategory>(
      *this, columns.at[0], codes != nullptr ? ClassType::text : *type,
      by_count(category_) ? std::vector<std::string>() : info.values,
      std::move(codes));
}

}  // namespace

std::shared_ptr<const FieldKind> make_category(std::string name,
                                               Category category) {
  return std::make_shared<CategoryKind>(std::move(name), std::move(category));
}

FieldDescriptor category_field() {
  return describe_field<Category, category_settings, make_category>("category");
}

std::vector<Json> class_names(const Field& field, const Json& statistics) {
  const std::optional<ClassFacts>& classes = field.kind->facts().classes;
  if (!classes || !statistics.is_object()) return {};
  std::vector<Json> names = statistics.find("classes")->array();
  if (classes->unknown) names.emplace_back();
  return names;
}

}  // namespace penstock
