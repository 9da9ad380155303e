#include "python/engine/predict.h"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include <string>

#include "penstock/base/printable.h"
#include "penstock/run/run.h"
#include "python/engine/gil.h"
#include "python/engine/own_predictor.h"
#include "python/engine/own_stepper.h"
#include "python/engine/own_trainer.h"

namespace penstock::python {
namespace {

/// Appends rows to lists, by the names of their columns.
class ListsOfColumns final : public TableWriter {
 public:
  ListsOfColumns(nb::dict lists, std::vector<NewColumn> columns)
      : lists_(std::move(lists)), columns_(std::move(columns)) {
    for (const NewColumn& column : columns_)
      lists_[column.name.c_str()] = nb::list();
  }
  ~ListsOfColumns() override {
    GilAcquire lock;
    lists_.reset();
  }

  void write(const Block& block) override {
    in_python([&] {
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        auto list = nb::cast<nb::list>(lists_[columns_[c].name.c_str()]);
        for (std::int64_t row = 0; row < block.rows; ++row)
          list.append(value(block.columns[c], row));
      }
    });
  }
  void finish() override {}

 private:
  static nb::object value(const Column& column, std::int64_t row) {
    if (!column.valid(row)) return nb::none();
    if (column.type == ColumnType::boolean)
      return nb::bool_(column.boolean(row));
    if (column.type == ColumnType::int64) return nb::int_(column.int64(row));
    if (column.type.kind == ColumnKind::number)
      return nb::float_(column.as_float64(row));
    const std::string_view text = column.text(row);
    return nb::str(text.data(), text.size());
  }

  nb::dict lists_;
  const std::vector<NewColumn> columns_;
};

OwnTrainer predicting(const nb::object& maker) {
  OwnTrainer made = trainer_of_torch(maker);
  made.make_predictor = [&maker](const Job& job, const FittedFields& fields,
                                 const Device& device) {
    const std::string facts = facts_of_predictions(job, fields, device).dump();
    return in_python([&]() -> std::unique_ptr<Predictor> {
      return std::make_unique<OwnPredictor>(maker.attr("predictor")(facts));
    });
  };
  return made;
}

void write_to_stdout(const std::string& text) {
  in_python(
      [&] { nb::module_::import_("penstock._program").attr("say")(text); });
}

/// As the program writes the predictions of other models.
std::unique_ptr<TableWriter> stdout_writer(
    const std::vector<NewColumn>& columns) {
  if (::isatty(STDOUT_FILENO) == 1)
    return first_rows(columns, [](const std::string& text) {
      write_to_stdout(printable_lines(text));
    });
  return text_writer(TextFormat::csv, columns, write_to_stdout, [] {});
}

/// {"rank", "document", "notes", "summary", "measures"}: see
/// penstock/run/predict.h.
Json told_of(const Predicted& predicted, const std::string& out) {
  Json told;
  told["rank"] = predicted.rank;
  told["document"] = json_of(predicted, out);
  told["notes"] = Json::Array{};
  for (const std::string& note : notes_of(predicted))
    told["notes"].push_back(note);
  told["summary"] = summary_of(predicted, out);
  told["measures"] = text_of_measures(predicted);
  return told;
}

std::string predict_rows(const std::string& run, const std::string& source,
                         const std::string& out, bool measures,
                         const nb::object& maker, const nb::object& lists) {
  const TrainedRun trained = read_trained_run(run);
  PredictOptions options{.source = Json::parse(source, "the source"),
                         .measures = measures,
                         .own = predicting(maker)};
  const bool to_file = !out.empty() && out != "-";
  if (to_file) {
    check_prediction_file(out, options.source);
    options.open = [&](const std::vector<NewColumn>& columns) {
      return open_prediction_file(out, columns);
    };
  } else if (out == "-") {
    options.open = stdout_writer;
  } else if (!lists.is_none()) {
    options.open = [&](const std::vector<NewColumn>& columns) {
      return in_python([&]() -> std::unique_ptr<TableWriter> {
        return std::make_unique<ListsOfColumns>(nb::cast<nb::dict>(lists),
                                                columns);
      });
    };
  }
  Predicted predicted;
  {
    GilRelease meanwhile;
    predicted = predict(trained, options);
  }
  return told_of(predicted, to_file ? out : "").dump();
}

}  // namespace

void bind_predict(nb::module_& module) {
  module.def("model_of_run", [](const std::string& run) {
    return model_section(read_trained_run(run).job.model).dump();
  });
  module.def(
      "predict",
      [](const std::string& run, const std::string& source,
         const std::string& out, bool measures, const nb::object& maker,
         const nb::object& lists) {
        try {
          std::string told =
              predict_rows(run, source, out, measures, maker, lists);
          write_messages();
          return told;
        } catch (...) {
          write_messages();
          throw;
        }
      },
      nb::arg("run"), nb::arg("source"), nb::arg("out"), nb::arg("measures"),
      nb::arg("maker"), nb::arg("lists").none());
}

}  // namespace penstock::python
