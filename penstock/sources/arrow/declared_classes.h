#pragma once

#include <arrow/type_fwd.h>

#include <memory>
#include <string>
#include <vector>

#include "penstock/sources/arrow/arrow_column.h"

namespace penstock::arrow_files {

/// Takes over what a schema says of classes: the names of those that integers
/// number (ClassLabel of Hugging Face), and which columns have a dictionary
/// whose order is that of the classes (Categorical of pandas, whether ordered
/// or not, as a data frame has it; or a dictionary that says it is ordered).
/// And which columns are the index of a data frame.
void declare_classes(const arrow::Schema& schema,
                     std::vector<ArrowColumn>& columns);

/// The dictionaries of such a column, one after the other: its classes where
/// all are one, else none, and they are sorted as those of any text.
class SharedDictionary {
 public:
  /// False: they are not one, whatever follows.
  bool add(const arrow::Array& values);
  /// Those that FileColumn::values has.
  std::vector<std::string> classes() const;

 private:
  std::shared_ptr<arrow::Array> dictionary_;
  bool shared_ = true;
};

}  // namespace penstock::arrow_files
