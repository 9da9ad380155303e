#include "penstock/dataset/table/table_options.h"

namespace penstock {

std::vector<ColumnRequest> requests_of(const RowsRecipe& recipe) {
  std::vector<ColumnRequest> requests = requests_of(recipe.fields);
  if (!recipe.split.by.empty())
    requests.push_back({.column = recipe.split.by,
                        .as = ReadAs::value,
                        .setting = "split.by",
                        .hashed = true});
  if (recipe.drawing)
    requests.push_back({.column = recipe.drawing.column,
                        .as = ReadAs::value,
                        .setting = recipe.drawing.balance ? "loader.balance"
                                                          : "loader.weights",
                        .hashed = recipe.drawing.balance});
  return requests;
}

}  // namespace penstock
