#include "penstock/transforms/multi_hot/multi_hot.h"

#include <cstring>
#include <utility>

#include "penstock/base/settings.h"
#include "penstock/transforms/category/vocabulary.h"
#include "penstock/transforms/kinds.h"
#include "penstock/transforms/multi_hot/label_list.h"

namespace penstock {
namespace {

constexpr std::int64_t kMostLabels = 65'536;

const SettingsTable<MultiHot>& multi_hot_settings() {
  static const SettingsTable<MultiHot> table =
      SettingsTable<MultiHot>()
          .section(
              "multi_hot",
              SettingsTable<MultiHot>()
                  .text("column", &MultiHot::column,
                        "Column of lists of labels")
                  .required()
                  .not_empty()
                  .integer("size", &MultiHot::size, 1, kMostLabels,
                           "Length of a row, at least the number of labels")
                  .required()
                  .text("separator", &MultiHot::separator,
                        "Text between the labels of a text. Default: each text "
                        "is a JSON list")
                  .integer(
                      "min_count", &MultiHot::min_count, 1, INT64_MAX,
                      "Train rows that a label needs. Rarer labels are unknown")
                  .choice("unknown", &MultiHot::unknown_is_bad,
                          {{"ignore", false}, {"error", true}},
                          "What to do with a label that the train rows do not "
                          "have. ignore: the label is left out; error: the row "
                          "is bad"),
              "Turns a column of lists of labels into float32 [size], with 1 "
              "for each label of the row.")
          .required();
  return table;
}

std::string_view run_of(ValueRow row) {
  return {reinterpret_cast<const char*>(row.data()), row.size()};
}

class Parser final : public FieldParser {
 public:
  Parser(const MultiHot& settings, std::size_t column)
      : settings_(settings), column_(column) {}

  void parse(const Block& block, Values& out, Faults& faults) override {
    for (std::int64_t row = 0; row < block.rows; ++row) {
      std::string why = read_labels(block.columns[column_], row,
                                    settings_.separator, labels_);
      if (why.empty())
        append_labels(labels_, out.bytes);
      else
        faults.reject(
            {.row = row, .place = settings_.column, .why = std::move(why)});
      out.ends.push_back(static_cast<std::uint32_t>(out.bytes.size()));
    }
  }

 private:
  const MultiHot settings_;
  const std::size_t column_;
  Labels labels_;
};

class Fit final : public FieldFit {
 public:
  explicit Fit(const MultiHot& settings) : settings_(settings) {}

  std::unique_ptr<FieldFit> part() const override {
    return std::make_unique<Fit>(settings_);
  }
  void add(std::span<const ValueRow> rows,
           std::span<const std::uint8_t> train) override {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (train[i] == 0) continue;
      ++rows_;
      each_label(run_of(rows[i]),
                 [&](std::string_view label) { counts_.add(label); });
    }
  }
  void merge(FieldFit& later) override {
    auto& from = static_cast<Fit&>(later);
    counts_.take(from.counts_);
    rows_ += from.rows_;
  }
  bool again() override { return false; }
  Json statistics() override {
    Json json;
    const std::int64_t known = ClassCounts::write(
        counts_.classes(ClassType::text, settings_.min_count, false),
        ClassType::text, json);
    json["rows"] = rows_;
    json["unknown"] = counts_.total() - known;
    return json;
  }

 private:
  const MultiHot settings_;
  ClassCounts counts_;
  std::int64_t rows_ = 0;
};

class Encoder final : public FieldEncoder {
 public:
  Encoder(const std::string& name, const MultiHot& settings,
          const Json& statistics, const std::string& path)
      : name_(name),
        settings_(settings),
        vocabulary_(statistics, ClassType::text, path) {
    const std::int64_t labels = std::ssize(statistics.find("classes")->array());
    if (labels > settings.size) refuse(labels);
  }

  void encode(std::span<const ValueRow> rows, const StoredRows& out,
              Faults& faults) override {
    constexpr float kOne = 1;
    std::byte* to = out.data;
    for (std::size_t i = 0; i < rows.size(); ++i, to += out.stride) {
      std::memset(to, 0,
                  static_cast<std::size_t>(settings_.size) * sizeof(kOne));
      std::string unknown;
      each_label(run_of(rows[i]), [&](std::string_view label) {
        const std::int64_t place = vocabulary_.find(label);
        if (place >= 0)
          std::memcpy(to + static_cast<std::size_t>(place) * sizeof(kOne),
                      &kOne, sizeof(kOne));
        else if (unknown.empty())
          unknown = Json(std::string(label)).dump();
      });
      if (!unknown.empty() && settings_.unknown_is_bad)
        reject(unknown, static_cast<std::int64_t>(i), faults);
    }
  }

 private:
  [[noreturn]] void refuse(std::int64_t labels) const {
    throw Error(
        ErrorKind::request,
        {.code = "fields.multi_hot",
         .what = "\"size\" is smaller than the number of labels",
         .where = "fields." + name_ + ".multi_hot.size",
         .why = "found " + std::to_string(labels) +
                " labels, but \"size\" is " + std::to_string(settings_.size),
         .next =
             "set size to " + std::to_string(labels) + ", or raise min_count"});
  }
  void reject(const std::string& label, std::int64_t row,
              Faults& faults) const {
    faults.reject(
        {.row = row,
         .place = settings_.column,
         .why = "found " + label + ", which is not a label of the train rows",
         .what = "cannot determine the labels of a row",
         .next = "use \"unknown\": \"ignore\""});
  }

  const std::string name_;
  const MultiHot settings_;
  const Vocabulary vocabulary_;
};

class BoundMultiHot final : public BoundField {
 public:
  BoundMultiHot(std::string name, MultiHot settings, std::size_t column)
      : name_(std::move(name)),
        settings_(std::move(settings)),
        column_(column) {}

  std::unique_ptr<FieldParser> parser() const override {
    return std::make_unique<Parser>(settings_, column_);
  }
  std::unique_ptr<FieldFit> fit(const FieldNotes*) const override {
    return std::make_unique<Fit>(settings_);
  }
  std::unique_ptr<FieldEncoder> encoder(
      const Json& statistics, const std::string& path) const override {
    return std::make_unique<Encoder>(name_, settings_, statistics, path);
  }

 private:
  const std::string name_;
  const MultiHot settings_;
  const std::size_t column_;
};

std::string column_setting(const std::string& name) {
  return "fields." + name + ".multi_hot.column";
}

FieldFacts facts_of(const std::string& name, const MultiHot& settings) {
  RowLayout layout;
  layout.append({{.name = name, .row_shape = {settings.size}}});
  return {.columns = {{.column = settings.column,
                       .as = ReadAs::value,
                       .setting = column_setting(name)}},
          .stored = {.tensors = std::move(layout.tensors)},
          .recipe = multi_hot_settings().shown(settings),
          .built_in = true,
          .classes = ClassFacts{.many = true}};
}

class MultiHotKind final : public FieldKind {
 public:
  MultiHotKind(std::string name, MultiHot settings)
      : FieldKind(facts_of(name, settings)),
        name_(std::move(name)),
        settings_(std::move(settings)) {}

  std::shared_ptr<const BoundField> bind(FieldColumns columns) const override {
    const ColumnType& type = columns.types[0];
    if (may_hold_labels(type, !settings_.separator.empty()))
      return std::make_shared<BoundMultiHot>(name_, settings_, columns.at[0]);
    const ColumnInfo& info = columns.info[0];
    throw Error(
        ErrorKind::request,
        {.code = "fields.multi_hot",
         .what = "cannot use the settings",
         .where = column_setting(name_),
         .why = "column '" + info.name + "' (" + info.declared + ") holds " +
                std::string(name_of(type)) + ", expected lists of labels",
         .next = settings_.separator.empty()
                     ? "name a column of lists or of JSON lists; for one class "
                       "per row use \"category\""
                     : "name a column of texts, or leave \"separator\" out"});
  }

  const MultiHot& settings() const { return settings_; }

 private:
  const std::string name_;
  const MultiHot settings_;
};

}  // namespace

std::shared_ptr<const FieldKind> make_multi_hot(std::string name,
                                                MultiHot settings) {
  return std::make_shared<MultiHotKind>(std::move(name), std::move(settings));
}

FieldDescriptor multi_hot_field() {
  return {.key = "multi_hot",
          .settings = [] { return multi_hot_settings().schemas(); },
          .make =
              [](const std::string& name, Spec& section) {
                MultiHot settings;
                multi_hot_settings().read(section, settings);
                return make_multi_hot(name, std::move(settings));
              }};
}

}  // namespace penstock
