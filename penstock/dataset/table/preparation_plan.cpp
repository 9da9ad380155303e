#include "penstock/dataset/table/preparation_plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "penstock/base/sha256_of.h"
#include "penstock/dataset/table/table_store.h"

namespace penstock {
namespace {

/// What no rows have that are read by position, whether their lengths are known
/// or not.
std::string why_no_positions(const AskedRows& rows,
                             const SourceTraits& source) {
  if (!source.by_position) return "the source cannot be read by position";
  if (!source.rows) return "the source does not know how many rows it has";
  if (rows.split_by_column) return "the split is by a column";
  return {};
}

std::string why_fitted(const AskedField& field) {
  if (!field.fitted) return {};
  return "field '" + field.name + "' needs statistics of the data";
}

std::string why_chosen(const AskedRows& rows) {
  if (rows.skips_bad) return "bad rows are left out before training";
  if (rows.drawn) return "rows are drawn by a column";
  return {};
}

std::string why_left_out(const AskedField& field) {
  if (!field.may_leave_out) return {};
  return "field '" + field.name + "' may leave rows out";
}

/// Why rows cannot be read by position unchanged.
std::string why_not_readable(const AskedRows& rows,
                             const SourceTraits& source) {
  std::string why = why_no_positions(rows, source);
  for (const AskedField& field : rows.fields) {
    if (why.empty()) why = why_fitted(field);
    if (!why.empty()) return why;
    if (field.varies && !field.lengths_known)
      return "the samples of field '" + field.name +
             "' differ in length, and reading them is the only way to know "
             "their lengths";
  }
  return why;
}

/// What a scan must find out, wherever the rows are kept; empty: nothing.
std::string why_scanned(const AskedRows& rows, const SourceTraits& source) {
  if (source.by_key) return "samples are numbered by their keys";
  std::string why = why_chosen(rows);
  if (why.empty()) why = why_not_readable(rows, source);
  for (const AskedField& field : rows.fields)
    if (why.empty()) why = why_left_out(field);
  return why;
}

/// Why rows cannot be prepared while batches are made.
std::string why_not_growing(const AskedRows& rows, const SourceTraits& source) {
  std::string why = why_no_positions(rows, source);
  for (const AskedField& field : rows.fields)
    if (why.empty()) why = why_fitted(field);
  if (why.empty()) why = why_chosen(rows);
  for (const AskedField& field : rows.fields) {
    if (why.empty()) why = why_left_out(field);
    if (!why.empty()) return why;
    if (field.packed && *field.packed != Packing::How::stream)
      return "field '" + field.name +
             "' packs all samples together, which needs their lengths; "
             "\"pack\": \"stream\" packs in windows instead";
    if (!field.most_known)
      return "the greatest length of the samples of field '" + field.name +
             "' is unknown";
  }
  return why;
}

[[noreturn]] void refuse_meanwhile(const SourceTraits& source,
                                   std::string why) {
  throw Error(ErrorKind::request,
              {.code = "data.not_meanwhile",
               .what = "cannot prepare these rows while batches are produced",
               .where = "loader.prepare = \"meanwhile\", " + source.shown,
               .why = std::move(why),
               .next = "leave \"prepare\" out: the rows are then prepared "
                       "once, before the first batch"});
}

/// Rows may be prepared while batches are made, and are named by what their
/// source is, whether they are kept already or not.
bool grows(const AskedRows& rows, const SourceTraits& source) {
  const bool asked = rows.preparing == Preparing::meanwhile;
  const bool streams =
      std::ranges::any_of(rows.fields, [](const AskedField& field) {
        return field.packed == Packing::How::stream;
      });
  if (!asked && (rows.preparing == Preparing::before || !streams)) return false;
  std::string why = why_not_growing(rows, source);
  if (!why.empty() && asked) refuse_meanwhile(source, std::move(why));
  return why.empty();
}

/// Why rows are scanned that could be read by position; empty: they are not.
std::string why_kept(const AskedRows& rows, const SourceTraits& source) {
  if (source.of_store) return "the rows come from a store";
  if (rows.budgets) return "'loader.cache' keeps the rows";
  if (rows.cache != "auto" && rows.cache != "none")
    return "the rows are kept in '" + rows.cache + "'";
  if (rows.cache == "auto" && source.decodes_chunks)
    return "rows are stored in chunks, which are decoded once and kept";
  return {};
}

/// Rows that lie in memory column by column are gathered from as many places as
/// there are columns: of many rows the first batches are, while all of them are
/// packed.
bool packs_beside(const AskedRows& rows, const SourceTraits& source,
                  const MachineFacts& machine) {
  constexpr std::int64_t kFew = 1 << 20;  // values, packed in some 50 ms
  constexpr std::size_t kManyChunks = 64;
  constexpr std::int64_t kTimes = 4;  // what a scan holds, of the packed rows
  if (!rows.opens_again || !source.in_memory ||
      rows.preparing != Preparing::automatic || rows.cache != "auto" ||
      rows.budgets || rows.plan_only || !machine.device_is_host)
    return false;
  const std::int64_t count = source.rows.value_or(0);
  if (count * std::ssize(rows.fields) <= kFew || !source.chunks ||
      *source.chunks > kManyChunks)
    return false;
  return !machine.memory_free ||
         static_cast<std::size_t>(kTimes * count) * rows.row_bytes <
             *machine.memory_free;
}

}  // namespace

PreparationPlan decide(const AskedRows& rows, const SourceTraits& source,
                       const MachineFacts& machine) {
  PreparationPlan plan{.uses_store = rows.stores};
  auto as = [&](RowsForm form, RowsIdentity identity, std::string reason) {
    plan.form = form;
    plan.identity = identity;
    plan.reason = std::move(reason);
    return plan;
  };
  if (grows(rows, source)) {
    const bool once = !rows.opens_again || source.in_memory;
    if (once && !rows.plan_only)  // a plan reads nothing
      return as(RowsForm::scanned, RowsIdentity::stored,
                "the rows cannot be read while batches are produced");
    return as(RowsForm::growing, RowsIdentity::stored,
              rows.preparing == Preparing::meanwhile
                  ? "\"loader.prepare\" is \"meanwhile\""
                  : "samples are packed in a stream");
  }
  if (std::string why = why_scanned(rows, source); !why.empty())
    return as(RowsForm::scanned, RowsIdentity::contents, std::move(why));
  if (packs_beside(rows, source, machine))
    return as(RowsForm::beside, RowsIdentity::source,
              "the source keeps them in memory, column by column");
  if (std::string why = why_kept(rows, source); !why.empty())
    return as(RowsForm::scanned, RowsIdentity::source, std::move(why));
  return as(RowsForm::by_position, RowsIdentity::source,
            "nothing requires a scan");
}

namespace {

struct ShownForm {
  RowsForm form;
  std::string_view name, text;
};
constexpr std::array<ShownForm, 4> kForms = {{
    {RowsForm::scanned, "scanned",
     "the rows are scanned before the first batch"},
    {RowsForm::by_position, "by_position",
     "the rows are read by position when a batch needs them"},
    {RowsForm::beside, "beside",
     "the rows are packed while the first batches read them by position"},
    {RowsForm::growing, "growing",
     "the rows are prepared while batches are produced"},
}};

}  // namespace

std::string_view name_of(RowsForm form) {
  return std::ranges::find(kForms, form, &ShownForm::form)->name;
}

std::string preparation_text(std::string_view form, std::string_view reason) {
  const auto known = std::ranges::find(kForms, form, &ShownForm::name);
  return std::string(known == kForms.end() ? form : known->text) + ": " +
         std::string(reason);
}

Json PreparationPlan::json() const {
  Json json;
  json["form"] = name_of(form);
  json["reason"] = reason;
  return json;
}

namespace {

AskedField asked_field(const Field& field) {
  AskedField asked{.name = field.name};
  for (const Output& output : field.kind->facts().outputs) {
    asked.varies |= output.lengths != Lengths::equal;
    if (output.own_lengths() && output.lengths != Lengths::bins &&
        output.most == 0)
      asked.most_known = false;
  }
  if (const std::optional<Packing>& packing = field.kind->facts().packing)
    asked.packed = packing->how;
  return asked;
}

}  // namespace

bool known_lengths(const std::vector<Field>& fields, const FieldKind& kind,
                   const Source& source, std::span<std::int32_t> lengths) {
  if (kind.facts().column_elements == 0) return false;
  const std::vector<ColumnRequest> requests = requests_of(fields);
  auto found = std::ranges::find(requests, kind.facts().columns.front().column,
                                 &ColumnRequest::column);
  return source.lengths(static_cast<std::size_t>(found - requests.begin()), 0,
                        lengths);
}

namespace {

std::vector<AskedField> asked_fields(const std::vector<Field>& fields,
                                     const Split& split,
                                     const BoundSource& source) {
  std::vector<AskedField> asked;
  for (const Field& field : fields) asked.push_back(asked_field(field));
  const SourceTraits facts = source_traits(*source.source);
  if (!facts.rows || !split.by.empty()) return asked;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    asked[f].fitted = !source.fields[f]->unfitted();
    asked[f].may_leave_out = source.fields[f]->may_leave_out();
    std::int32_t first = 0;
    asked[f].lengths_known =
        asked[f].varies &&
        known_lengths(fields, *fields[f].kind, *source.source,
                      std::span(&first, *facts.rows > 0 ? 1 : 0));
  }
  return asked;
}

}  // namespace

AskedRows asked_rows(const TableDatasetOptions& options,
                     const BoundSource& source) {
  return {.fields = asked_fields(options.fields, options.split, source),
          .row_bytes = layout_of(options.fields).row_bytes,
          .split_by_column = !options.split.by.empty(),
          .drawn = static_cast<bool>(options.drawing),
          .skips_bad = options.source.skip_bad,
          .cache = options.cache,
          .budgets = options.budgets.any(),
          .stores = uses_stores(options),
          .preparing = options.preparing,
          .opens_again = options.open != nullptr,
          .plan_only = options.plan_only};
}

SourceTraits source_traits(const Source& source) {
  const Abilities& abilities = source.abilities();
  SourceTraits facts{.shown = source.shown(),
                     .by_key = abilities.by_key,
                     .by_position = abilities.by_position,
                     .in_memory = abilities.in_memory,
                     .of_store = source.facts().of_store};
  if (facts.by_position)  // by key it may cost a statement
    if (const RowCount count = source.count(); count.exact)
      facts.rows = count.rows;
  if (const ChunkMap* chunks = source.chunks()) {
    facts.chunks = chunks->ends.size();
    facts.decodes_chunks = chunks->chunk_ns > 0;
  }
  return facts;
}

PreparationPlan plan_preparation(const TableDatasetOptions& options,
                                 const BoundSource& source,
                                 const MachineFacts& machine) {
  PreparationPlan plan = decide(asked_rows(options, source),
                                source_traits(*source.source), machine);
  if (plan.identity != RowsIdentity::contents)
    plan.fingerprint = named_fingerprint(
        options.fields, options.split, unfitted_statistics(source.fields),
        *source.source, plan.identity == RowsIdentity::stored);
  return plan;
}

std::string why_not_by_position(const std::vector<Field>& fields,
                                const Split& split, bool fitted,
                                const BoundSource& source) {
  AskedRows rows{.fields = asked_fields(fields, split, source),
                 .split_by_column = !split.by.empty()};
  if (fitted)
    for (AskedField& field : rows.fields) field.fitted = false;
  return why_not_readable(rows, source_traits(*source.source));
}

namespace {

/// A run may go on with a copy of its files.
Json of_any_copy(const Json& identity) {
  if (identity.is_array()) {
    Json parts(Json::Array{});
    for (const Json& part : identity.array())
      parts.push_back(of_any_copy(part));
    return parts;
  }
  if (!identity.is_object()) return identity;
  Json json(Json::Object{});
  for (const auto& [key, value] : identity.object())
    if (key != kThisCopy) json[key] = of_any_copy(value);
  return json;
}

}  // namespace

std::vector<Json> unfitted_statistics(const BoundFields& fields) {
  std::vector<Json> all;
  for (const auto& field : fields)
    all.push_back(field->unfitted().value_or(Json()));
  return all;
}

std::string named_fingerprint(const std::vector<Field>& fields,
                              const Split& split,
                              const std::vector<Json>& statistics,
                              const Source& source, bool stored) {
  Json all;
  all["identity"] = of_any_copy(source.identity());
  all["rows"] = source.count().rows.value_or(0);
  all["fields"] = stored ? stored_recipes_of(fields) : recipes_of(fields);
  for (std::size_t f = 0; f < statistics.size(); ++f)
    all["statistics"][fields[f].name] = statistics[f];
  all["train"] = split.train;
  all["val"] = split.val;
  if (split.test > 0) all["test"] = split.test;
  all["split_seed"] = std::to_string(split.seed);
  if (split.folds > 0) all["fold"] = fold_json(split);
  if (split.limited()) {
    all["limit_share"] = split.share;
    all["limit_rows"] = split.most;
  }
  return sha256_of(all.dump());
}

}  // namespace penstock
