#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/base/shown.h"
#include "penstock/inspect/survey.h"
#include "penstock/sources/sources.h"

namespace penstock {

/// What a new job is to be of.
struct NewJob {
  SourceSpec source;
  std::string target = {};  ///< a column; of media and texts it may be empty
  std::string name = {};    ///< what the file will be called
  std::string input = {};   ///< of arrays: the column that the model sees
  std::string base = {};    ///< of texts: the folder of a language model
};

// Pieces of the text of a new job. It is put together line by line, since JSON
// documents keep no comments.

std::string quoted(const std::string& text);
/// Pieces with `between` after each but the last, in lines that fit.
std::string lines_of(const std::vector<std::string>& pieces,
                     const std::string& first, const std::string& next,
                     const std::string& between);
/// Lines that begin with "// ".
std::string comment(const std::string& text, const std::string& indent);

/// The settings of the source that are not as by default, as `"key": value`.
std::vector<std::string> settings_of(const SourceSpec& spec);
std::string source_line(const std::vector<std::string>& settings);
/// The first lines: what it was written from, and how it is run.
std::string begin_of_job(const std::string& of_what, const std::string& name);

/// Integers that number classes with names; -1 means no class.
bool is_label(const ColumnSurvey& column);
/// Whether a target is learned as classes: texts, booleans, and whole numbers
/// of few values.
bool is_class(const ColumnSurvey& target);

/// The section "train", which ends the job: `settings`, as `"key": value, ...`,
/// and where about so many rows are held out that a run can be judged by them,
/// `patience`.
std::string train_line(std::int64_t held_out, const std::string& settings);

/// How many rows a batch has, so that some batches are full: a quarter of the
/// train rows, and at most `most`.
std::int64_t batch_of(std::int64_t rows, std::int64_t most);

/// Throws Error(request), code init.target.
[[noreturn]] void refuse_target(const std::string& name, std::string why,
                                std::string next);
/// The same where no column was named: with the columns that there are.
[[noreturn]] void refuse_without_target(const SourceSpec& spec);

}  // namespace penstock
