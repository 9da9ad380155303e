#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/block.h"
#include "penstock/base/bytes.h"

namespace penstock {

/// The labels of a row: texts, each once, sorted by their UTF-8 bytes.
using Labels = std::vector<std::string>;

/// Reads the labels of a row of a column: a list of integers, which are taken
/// as texts; a text that holds a list as JSON does; or, where there is a
/// separator, a text of labels with that between them. What is wrong with the
/// row; empty: nothing.
std::string read_labels(const Column& column, std::int64_t row,
                        const std::string& separator, Labels& labels);

/// True for columns that may hold labels.
bool may_hold_labels(const ColumnType& type, bool separated);

/// Appends labels as a run of bytes: each its length, uint32, and its bytes.
void append_labels(const Labels& labels, Bytes& to);

/// Calls `take` with each label of such a run.
template <class Take>
void each_label(std::string_view run, Take take);

/// The first label of a run, which it then begins behind.
std::string_view next_label(std::string_view& run);

template <class Take>
void each_label(std::string_view run, Take take) {
  while (!run.empty()) take(next_label(run));
}

}  // namespace penstock
