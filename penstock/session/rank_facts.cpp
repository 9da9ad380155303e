#include "penstock/session/rank_facts.h"

#include <algorithm>

#include "penstock/session/state.h"

namespace penstock {
namespace {

/// "x float32 [8, 4], y int64 [1]", in their order.
std::string shown_tensors(const std::vector<Output>& outputs) {
  std::string text;
  for (const Output& tensor : outputs)
    text += (text.empty() ? "" : ", ") + tensor.name + " " +
            std::string(name_of(tensor.dtype)) + " " +
            text_of(tensor.row_shape);
  return text;
}

Json source_json(const SourceSpec& source) {
  Json json;
  json["kind"] = source.kind;
  json["table"] = source.table;
  json["query"] = source.query;
  json["key"] = settings::list_of(source.key);
  json["where"] = source.where;
  for (const SourceSpec& one : source.sources)
    json["sources"].push_back(source_json(one));
  json["on_bad"] = source.skip_bad ? "skip" : "stop";
  return json;
}

std::string name_of(OnBad on_bad) {
  return on_bad == OnBad::stop         ? "stop"
         : on_bad == OnBad::substitute ? "substitute"
                                       : "mask";
}

}  // namespace

Json facts_of(const Job& job, Side side, const Rank& rank, std::int64_t batches,
              const Order& order, const Dataset& rows) {
  Json facts;
  facts["world"] = rank.world;
  facts["side"] = std::string(name_of(side));
  if (!job.source.kind.empty()) facts["source"] = source_json(job.source);
  for (std::size_t s = 0; s < job.sources.size(); ++s) {
    const MixedSource& one = job.sources[s];
    Json& fact = facts["sources[" + std::to_string(s) + "]"];
    fact["source"] = source_json(one.source);
    fact["weight"] = one.weight;
    fact["split"] = *order_json({}, one.split).find("split");
  }
  facts["fields"] = recipes_of(job);
  Json settings = order_json(order, job.split);
  for (const char* key : {"batch_size", "seed", "shuffle", "tail"})
    facts["loader"][key] = *settings.find(key);
  for (const char* key : {"page", "window", "group_by_length"})
    if (const Json* pages = settings.find(key)) facts["loader"][key] = *pages;
  if (const Json* draws = settings.find("weights"))
    facts["loader"][job.loading.drawing.balance ? "balance" : "weights"] =
        *draws;
  if (const Json* mixed = settings.find("sources"))
    facts["samples of each source"] = *mixed;
  facts["loader"]["on_bad"] = name_of(job.loading.options.on_bad);
  facts["split"] = *settings.find("split");
  facts["steps in all"] = batches;
  facts["tensors"] = shown_tensors(rows.outputs());
  Json& count = facts["rows"];
  count["all"] = rows.rows();
  count["train"] = rows.rows_on(Side::train);
  count["val"] = rows.rows_on(Side::val);
  count["test"] = rows.rows_on(Side::test);
  const auto& of_some = rows.facts().fingerprint_of_some;
  facts["fingerprint"] = of_some ? of_some() : rows.fingerprint();
  return facts;
}

namespace {

/// What names the rows that were read, where nothing compares them.
std::string fingerprints(const Job& job, const Dataset& rows) {
  auto shown = [](const std::string& setting, const Dataset& of) {
    return "'" + setting + "source.fingerprint' would be \"" +
           of.fingerprint().substr(0, 16) + "\"";
  };
  const std::vector<MixedRows>& parts = rows.facts().parts;
  if (parts.empty() || job.sources.empty()) return shown("", rows);
  std::string all;
  for (std::size_t s = 0; s < parts.size(); ++s)
    all += (s == 0 ? "" : ", ") +
           shown("sources[" + std::to_string(s) + "].", *parts[s].rows);
  return all;
}

bool named(const Job& job) {
  if (job.sources.empty()) return !job.source.fingerprint.empty();
  return std::ranges::none_of(job.sources, [](const MixedSource& one) {
    return one.source.fingerprint.empty();
  });
}

}  // namespace

void check_named_rows(const Rank& rank, const Job& job, const Dataset& rows) {
  if (rank.world == 1 || named(job)) return;
  throw Error(
      ErrorKind::request,
      {.code = "ranks.agree",
       .what = "cannot open one rank of " + std::to_string(rank.world),
       .where = "rank " + std::to_string(rank.rank),
       .why = "the ranks have no way to compare the rows that they read: there "
              "is neither a torch process group nor an 'agree'",
       .next = "open the loader after torch.distributed.init_process_group(), "
               "pass 'agree' (an all-gather), or name the rows in the job: " +
               fingerprints(job, rows) + " for the rows just read"});
}

}  // namespace penstock
