#include "penstock/dataset/mixed/mixed_dataset.h"

#include <algorithm>
#include <utility>

// The rows of several data sets, numbered one set after the other: `firsts_`
// has the first number of each, so that a number says its source. The parts
// keep their own numbers, fillers and I/O threads; a batch's ranges are shared
// out to them, and each writes to the places of its own. Which source a sample
// of the train side comes from is a function of its place in the order
// (Mixture), never of what was read before. Immutable, so without a lock.

namespace penstock {

void refuse_mixing(std::string code, std::size_t source, std::string why,
                   std::string next) {
  throw Error(ErrorKind::request,
              {.code = std::move(code),
               .what = "cannot mix these sources",
               .where = "sources[" + std::to_string(source) + "]",
               .why = std::move(why),
               .next = std::move(next)});
}
namespace {

std::string shown(const Output& output) {
  return "'" + output.name + "' " + std::string(name_of(output.dtype)) + " " +
         text_of(output.row_shape) +
         (output.lengths == Lengths::equal    ? ""
          : output.lengths == Lengths::padded ? " padded"
          : output.lengths == Lengths::packed ? " packed"
                                              : " in bins");
}

std::string shown(const std::vector<Output>& outputs, std::size_t at) {
  return at < outputs.size() ? shown(outputs[at]) : "missing";
}

/// Begins to read the rows of each part.
class MixedReadAhead final : public ReadAhead {
 public:
  MixedReadAhead(const MixedDataset& dataset, const Options& options)
      : dataset_(dataset) {
    for (const MixedRows& part : dataset.facts().parts) {
      Options own = options;
      own.threads = threads_of(part, options.threads);
      reads_.push_back(own.threads > 0 ? part.rows->open_read_ahead(own)
                                       : nullptr);
    }
  }

  std::shared_ptr<ItemRead> begin(std::span<const SampleId> ids) override {
    std::vector<std::vector<SampleId>> of(reads_.size());
    for (SampleId id : ids) {
      if (id < 0) continue;
      const std::size_t source = dataset_.source_of(id);
      of[source].push_back(dataset_.within(source, id));
    }
    std::vector<std::shared_ptr<ItemRead>> parts;
    bool any = false;
    for (std::size_t s = 0; s < of.size(); ++s) {
      parts.push_back(of[s].empty() || reads_[s] == nullptr
                          ? nullptr
                          : reads_[s]->begin(of[s]));
      any |= parts.back() != nullptr;
    }
    return any ? std::make_shared<ItemRead>(std::move(parts)) : nullptr;
  }

  void set_threads(int threads) override {
    for (std::size_t s = 0; s < reads_.size(); ++s)
      if (reads_[s] != nullptr)
        reads_[s]->set_threads(threads_of(dataset_.facts().parts[s], threads));
  }

 private:
  static int threads_of(const MixedRows& part, int threads) {
    return std::min(threads, part.rows->facts().most_readers);
  }

  const MixedDataset& dataset_;
  std::vector<std::unique_ptr<ReadAhead>> reads_;
};

}  // namespace

void check_same_tensors(const std::vector<std::vector<Output>>& sources) {
  const std::vector<Output>& first = sources.front();
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const std::vector<Output>& outputs = sources[s];
    for (std::size_t o = 0; o < std::max(first.size(), outputs.size()); ++o)
      if (shown(outputs, o) != shown(first, o))
        refuse_mixing("mixing.tensors", s,
                      "tensor " + std::to_string(o) + " is " +
                          shown(outputs, o) + ", but that of sources[0] is " +
                          shown(first, o),
                      "make the fields of all sources produce the same tensors "
                      "with the same names");
    for (const Output& output : outputs)
      if (output.name == kSourceTensor)
        refuse_mixing("mixing.tensors", s,
                      "the source has a tensor 'source', a name that mixtures "
                      "use for the number of a row's source",
                      "give the field another name");
  }
}

MixedDataset::MixedDataset(std::vector<MixedRows> parts, Exhausted exhausted) {
  facts_.parts = std::move(parts);
  PENSTOCK_ASSERT(!facts_.parts.empty(), "a mixture has a source");
  std::vector<std::vector<Output>> tensors;
  for (const MixedRows& part : facts_.parts)
    tensors.push_back(part.rows->outputs());
  check_same_tensors(tensors);
  add_sides();
  add_plan();
  mix(exhausted);
}

void MixedDataset::add_sides() {
  const DatasetFacts& first = facts_.parts.front().rows->facts();
  facts_.outputs = first.outputs;
  facts_.outputs.push_back(
      {.name = kSourceTensor, .dtype = Dtype::int32, .row_shape = {}});
  facts_.longest.assign(first.longest.size(), 0);
  for (const MixedRows& part : facts_.parts) {
    const DatasetFacts& facts = part.rows->facts();
    PENSTOCK_ASSERT(
        facts.device_fields[0].empty() && facts.device_fields[1].empty(),
        "the rows of a mixture are finished on the host");
    firsts_.push_back(facts_.rows);
    facts_.rows += facts.rows;
    facts_.preparations.insert(facts_.preparations.end(),
                               facts.preparations.begin(),
                               facts.preparations.end());
    for (std::size_t side = 0; side < facts.on_side.size(); ++side)
      facts_.on_side[side] += facts.on_side[side];
    for (std::size_t v = 0; v < facts.longest.size(); ++v)
      facts_.longest[v] = std::max(facts_.longest[v], facts.longest[v]);
    facts_.whole_batches |= facts.whole_batches;
    facts_.repeats |= facts.repeats;
    facts_.most_readers = std::max(facts_.most_readers, facts.most_readers);
  }
  firsts_.push_back(facts_.rows);
}

/// What each tier takes of all parts; the tier is the slowest of them.
void MixedDataset::add_plan() {
  TierPlan& plan = facts_.plan;
  plan.tier = Tier::device;
  for (const MixedRows& part : facts_.parts)  // of one that was planned, if any
    if (!plan.limits.ram_free) plan.limits = part.rows->plan().limits;
  for (std::size_t s = 0; s < facts_.parts.size(); ++s) {
    const TierPlan& of = facts_.parts[s].rows->plan();
    plan.tier = std::max(plan.tier, of.tier);
    for (const TierPlan::Line& line : of.lines) {
      if (!line.chosen) continue;
      auto sum =
          std::ranges::find(plan.lines, line.tier, &TierPlan::Line::tier);
      if (sum == plan.lines.end())
        sum = plan.lines.insert(
            sum, {.tier = line.tier, .fits = true, .chosen = true, .why = {}});
      sum->rows_bytes += line.rows_bytes;
      sum->host_bytes += line.host_bytes;
      sum->device_bytes += line.device_bytes;
      sum->disk_bytes += line.disk_bytes;
      sum->rows += line.rows;
      sum->why += (sum->why.empty() ? "sources[" : "; sources[") +
                  std::to_string(s) + "]: " + line.why;
    }
  }
  std::ranges::sort(plan.lines, {}, &TierPlan::Line::tier);
  plan.places = {{plan.tier, facts_.rows}};
}

void MixedDataset::mix(Exhausted exhausted) {
  if (facts_.on_side[0] == 0) return;  // the loader says what is wrong
  std::vector<MixtureShare> shares;
  for (std::size_t s = 0; s < facts_.parts.size(); ++s) {
    shares.push_back({.samples = facts_.parts[s].rows->rows_on(Side::train),
                      .weight = facts_.parts[s].weight});
    if (shares.back().samples == 0)
      refuse_mixing("mixing.empty", s,
                    "none of the source's " +
                        std::to_string(facts_.parts[s].rows->rows()) +
                        " rows is on the side 'train'",
                    "raise the source's split.train, or leave the source out");
  }
  facts_.mixture =
      std::make_shared<const Mixture>(std::move(shares), exhausted);
}

const std::string& MixedDataset::fingerprint() const {
  hashed_.call([this] {
    Sha256 all;
    for (const MixedRows& part : facts_.parts)
      all.add(part.rows->fingerprint() + " " + Json(part.weight).dump() + " " +
              part.about.dump() + "\n");
    if (facts_.mixture != nullptr)
      all.add(facts_.mixture->exhausted() == Exhausted::stop ? "stop"
                                                             : "repeat");
    fingerprint_ = all.hex();
  });
  return fingerprint_;
}

void MixedDataset::select(Side side, std::span<SampleId> ranks) const {
  for (SampleId& rank : ranks) {
    if (rank < 0) continue;
    std::size_t source = 0;
    for (std::int64_t rows = 0;
         rank >= (rows = facts_.parts[source].rows->rows_on(side)); ++source)
      rank -= rows;
    facts_.parts[source].rows->select(side, std::span(&rank, 1));
    rank += firsts_[source];
  }
}

std::size_t MixedDataset::source_of(SampleId sample) const {
  auto next = std::ranges::upper_bound(firsts_, sample);
  return static_cast<std::size_t>(next - firsts_.begin()) - 1;
}

Json MixedDataset::key_of(SampleId sample) const {
  const std::size_t source = source_of(sample);
  const Json key = facts_.parts[source].rows->key_of(within(source, sample));
  return Json(std::to_string(source) + ":" +
              (key.is_string() ? key.string() : key.dump()));
}

void MixedDataset::lengths(std::size_t varying,
                           std::span<const SampleRange> ranges,
                           std::span<std::int32_t> out) const {
  std::vector<SampleRange> own;
  std::vector<std::size_t> places;
  std::vector<std::int32_t> found;
  std::ranges::fill(out, 0);
  for (std::size_t s = 0; s < facts_.parts.size(); ++s) {
    own.clear();
    places.clear();
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      SampleRange range = ranges[i];
      if (range.sample < firsts_[s] || range.sample >= firsts_[s + 1]) continue;
      range.sample = within(s, range.sample);
      own.push_back(range);
      places.push_back(i);
    }
    if (own.empty()) continue;
    found.resize(own.size());
    facts_.parts[s].rows->lengths(varying, own, found);
    for (std::size_t i = 0; i < places.size(); ++i) out[places[i]] = found[i];
  }
}

std::unique_ptr<ReadAhead> MixedDataset::open_read_ahead(
    ReadAhead::Options options) const {
  if (facts_.most_readers == 0) return nullptr;
  return std::make_unique<MixedReadAhead>(*this, options);
}

}  // namespace penstock
