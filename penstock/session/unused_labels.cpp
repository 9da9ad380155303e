#include "penstock/session/unused_labels.h"

#include <algorithm>

namespace penstock {

std::string unused_labels_text(const Schema& schema,
                               const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    const std::optional<TokenFacts>& tokens = field.kind->facts().tokens;
    if (!tokens || tokens->labelled || tokens->tokenized) continue;
    const std::string& column = tokens->column;
    const std::size_t name = column.rfind('.') + 1;  // 0 if none exists
    const std::string labels = column.substr(0, name) + "labels";
    if (column == labels ||
        std::ranges::find(schema.columns, labels, &ColumnInfo::name) ==
            schema.columns.end())
      continue;
    return "the column '" + labels + "' next to '" + column +
           "' is not used, so every token is a target. If the column marks "
           "targets (-100: not a target), set \"labels\": \"" +
           labels + "\" in field '" + field.name + "'";
  }
  return {};
}

}  // namespace penstock
