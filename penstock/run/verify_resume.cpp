#include "penstock/run/verify_resume.h"

#include <algorithm>
#include <optional>

#include "penstock/run/checkpoint.h"
#include "penstock/run/host_copy.h"
#include "penstock/run/sample_key.h"
#include "penstock/run/session.h"

// A row has a hash of its sample and of its part of every tensor. The batches
// of all ranks, one after the other, are the batch of a single one, so the hash
// of a step's row hashes does not depend on the number of ranks; and 8 bytes a
// step are all that is kept of the run without interruption. Only where they
// differ is its batch made once more, to find the row.

namespace penstock {
namespace {

constexpr std::size_t kListed = 10;          // divergences
constexpr std::int64_t kRestartsAChain = 6;  // about

/// The rows of a step, those of all ranks.
struct Rows {
  std::vector<std::uint64_t> hashes;
  std::vector<SampleId> ids;

  std::uint64_t hash() const {
    return hash64(std::as_bytes(std::span(hashes)));
  }
};

/// Without the zeros at the end: how far a padded row is filled up depends on
/// the other rows of its rank.
std::span<const std::byte> without_padding(std::span<const std::byte> bytes) {
  while (!bytes.empty() && bytes.back() == std::byte{0})
    bytes = bytes.first(bytes.size() - 1);
  return bytes;
}

void add_rows(Batch& batch, Session& session, Rows& out) {
  const HostCopy copy(batch, session.stream());
  const std::vector<BatchTensor>& tensors = session.tensors();
  const auto rows = static_cast<std::size_t>(batch.rows());
  out.ids.insert(out.ids.end(), batch.ids().begin(), batch.ids().end());
  for (std::size_t r = 0; r < rows; ++r) {
    std::uint64_t hash = static_cast<std::uint64_t>(batch.ids()[r]);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const TensorView& view = copy.tensors()[t].view;
      std::size_t bytes = view.bytes() / rows;
      std::span<const std::byte> row{view.data + r * bytes, bytes};
      if (tensors[t].what == BatchTensor::What::padded)
        row = without_padding(row);
      hash = hash64(row, hash);
    }
    out.hashes.push_back(hash);
  }
}

/// A batch of samples that are packed has no rows of its own: it is one.
bool packed(Session& session) {
  return std::ranges::any_of(session.tensors(), [](const BatchTensor& tensor) {
    return tensor.what == BatchTensor::What::packed;
  });
}

void add_whole(Batch& batch, Session& session, Rows& out) {
  const HostCopy copy(batch, session.stream());
  out.ids.insert(out.ids.end(), batch.ids().begin(), batch.ids().end());
  out.hashes.push_back(
      hash64(copy.bytes(), hash64(std::as_bytes(batch.ids()))));
}

/// Milliseconds that something took, each time.
class Times {
 public:
  void add(Nanoseconds time) {
    all_.push_back(static_cast<double>(time.count()) / 1e6);
  }
  Json json() {
    std::ranges::sort(all_);
    Json json;
    json["median"] = all_.empty() ? Json() : Json(all_[all_.size() / 2]);
    json["max"] = all_.empty() ? Json() : Json(all_.back());
    return json;
  }

 private:
  std::vector<double> all_;
};

void check_numbers(const ResumeCheck& check) {
  if (check.steps >= 0 && check.points >= -1 && check.chains >= 0 &&
      check.most_ranks >= 1)
    return;
  throw Error(ErrorKind::request,
              {.code = "resume.numbers",
               .what = "cannot verify so",
               .where = "the steps, points, chains and ranks",
               .why = "found " + std::to_string(check.steps) + ", " +
                      std::to_string(check.points) + ", " +
                      std::to_string(check.chains) + " and " +
                      std::to_string(check.most_ranks),
               .next = "give numbers from 0, and at least one rank"});
}

class Verification {
 public:
  Verification(const Job& job, const ResumeCheck& check)
      : job_(job), check_(check), device_(open_device(job.device)) {}

  Json run() {
    walk();
    restart_in_place();
    whole_.reset();  // so that its rows are not kept beside those of a restart
    for (std::int64_t chain = 0; chain < check_.chains; ++chain)
      run_chain(chain);
    return result();
  }

 private:
  StopFlag stop() const { return {check_.stop}; }

  void say(const std::string& what, std::int64_t at) const {
    end_if_stopped(stop());
    if (check_.progress)
      check_.progress(what + ": step " + std::to_string(at) + " of " +
                      std::to_string(steps_));
  }

  /// A session over rows that were opened now, or before.
  std::unique_ptr<Session> open(const Job& job, Rank rank,
                                std::shared_ptr<const Dataset> rows,
                                std::optional<SavedState> state = {}) const {
    return open_loader(
        job,
        {.rank = rank,
         .batches = -1,
         .stop = {std::shared_ptr<void>(), check_.stop},  // which it outlives
         .device = device_,
         .rows = [rows](const Job&, Device&, StopFlag) { return rows; },
         .state = std::move(state),
         .agrees_later = true});
  }

  std::shared_ptr<const Dataset> read_rows() const {
    return open_rows(job_, *device_,
                     {.rows = check_.rows, .statistics = statistics_}, stop());
  }

  void add(Batch batch, Session& session, Rows& rows) const {
    (packed_ ? add_whole : add_rows)(batch, session, rows);
    session.release(std::move(batch));
  }

  Position place(std::int64_t step) const {
    return {.epoch = step / per_epoch_, .step = step % per_epoch_};
  }

  void walk();
  void restart_in_place();
  void run_chain(std::int64_t chain);
  Job changed_job(Random& random) const;
  void compare(std::int64_t step, const Rows& rows, const std::string& where);
  Json result();

  const Job& job_;
  const ResumeCheck& check_;
  const std::shared_ptr<Device> device_;
  std::optional<Json> statistics_;
  std::unique_ptr<Session> whole_;  // the run without interruption
  bool packed_ = false;
  int most_ranks_ = 1;
  std::int64_t steps_ = 0, per_epoch_ = 1;
  std::vector<std::uint64_t> expected_;               // by step
  std::vector<std::pair<std::int64_t, Json>> saved_;  // by point, its step
  std::size_t state_bytes_ = 0;
  SavedState beginning_;
  std::int64_t restarts_ = 0, divergences_ = 0;
  Json::Array listed_;
  Times in_place_, resumed_;
};

void Verification::walk() {
  whole_ = open(job_, {}, read_rows());
  per_epoch_ = whole_->steps_per_epoch();
  steps_ = std::min(check_.steps > 0 ? check_.steps : 2 * per_epoch_,
                    steps_in_all(job_, whole_->order()));
  packed_ = packed(*whole_);
  bool mixed = whole_->rows().info().whole_batches ||
               !loader_options(job_, Side::train).operations.empty();
  most_ranks_ = packed_ || mixed ? 1 : check_.most_ranks;
  beginning_ = {.fingerprint = whole_->rows().fingerprint(),
                .order = order_json(whole_->order(), job_.split),
                .fields = recipes_of(job_)};
  if (auto table = whole_->dataset()) {
    statistics_ = table->statistics();
    beginning_.statistics_sha256 = sha256_of_statistics(*statistics_);
  }
  std::int64_t points =
      check_.points < 0 ? steps_ : std::min(check_.points, steps_);
  for (std::int64_t step = 0; step < steps_; ++step) {
    say("without interruption", step);
    // Of the steps [0, steps_), the first, the last and others between them.
    std::int64_t next = std::ssize(saved_);
    if (next < points &&
        step >= (points == 1 ? 0 : next * (steps_ - 1) / (points - 1))) {
      saved_.emplace_back(step, whole_->state());
      state_bytes_ = std::max(state_bytes_, saved_.back().second.dump().size());
    }
    Rows rows;
    add(promised(whole_->next()), *whole_, rows);
    expected_.push_back(rows.hash());
  }
}

void Verification::restart_in_place() {
  for (const auto& [step, state] : saved_) {
    say("restarts in place", step);
    const Nanoseconds began = wall_clock().now();
    whole_->load_state(Json::parse(state.dump(), "state"));
    Batch batch = promised(whole_->next());
    batch.wait();
    in_place_.add(wall_clock().now() - began);
    Rows rows;
    add(std::move(batch), *whole_, rows);
    compare(step, rows, "restart in place");
  }
}

/// The job with other numbers of threads and of batches ahead.
Job Verification::changed_job(Random& random) const {
  constexpr int kWorkers[] = {0, 1, 2, 4};
  constexpr int kAhead[] = {1, 2, 5};
  Job job = job_;
  job.loading.workers = kWorkers[random.below(std::size(kWorkers))];
  job.loading.options.prefetch = kAhead[random.below(std::size(kAhead))];
  return job;
}

void Verification::run_chain(std::int64_t chain) {
  Random random(check_.seed, static_cast<std::uint64_t>(chain), 0, 0);
  const auto longest = static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, 2 * steps_ / kRestartsAChain));
  SavedState state = beginning_;
  for (std::int64_t step = 0, link = 0; step < steps_; ++link) {
    const int world =
        1 +
        static_cast<int>(random.below(static_cast<std::uint64_t>(most_ranks_)));
    const Job job = changed_job(random);
    const std::int64_t end = std::min(
        steps_, step + 1 + static_cast<std::int64_t>(random.below(longest)));
    const std::string where = "chain " + std::to_string(chain + 1) +
                              ", restart " + std::to_string(link) + " on " +
                              std::to_string(world) + " ranks";
    const Nanoseconds began = wall_clock().now();
    state = parse_state(Json::parse(json_of(state).dump(), "state"), "state");
    std::shared_ptr<const Dataset> opened = read_rows();
    std::vector<std::unique_ptr<Session>> ranks;
    for (int rank = 0; rank < world; ++rank)
      ranks.push_back(open(job, {.rank = rank, .world = world}, opened, state));
    for (bool first = true; step < end; ++step, first = false) {
      say(where, step);
      Rows rows;
      for (const std::unique_ptr<Session>& rank : ranks)
        add(promised(rank->next()), *rank, rows);
      if (first && link > 0) {
        resumed_.add(wall_clock().now() - began);
        ++restarts_;
      }
      compare(step, rows, where);
    }
    state.position = ranks.front()->position();
    state.steps_taken = step;
  }
}

void Verification::compare(std::int64_t step, const Rows& rows,
                           const std::string& where) {
  if (rows.hash() == expected_[static_cast<std::size_t>(step)]) return;
  ++divergences_;
  if (listed_.size() >= kListed) return;
  Position at = place(step);
  if (whole_ == nullptr) whole_ = open(job_, {}, read_rows());
  whole_->seek(at);
  Rows whole;
  add(promised(whole_->next()), *whole_, whole);
  std::size_t row = 0;
  while (row < std::min(rows.hashes.size(), whole.hashes.size()) &&
         rows.hashes[row] == whole.hashes[row])
    ++row;
  Json json;
  json["where"] = where;
  json["epoch"] = at.epoch;
  json["step"] = at.step;
  json["rows"] = rows.hashes.size();
  json["expected_rows"] = whole.hashes.size();
  if (row < std::min(rows.ids.size(), whole.ids.size())) {
    std::shared_ptr<const TableDataset> table = whole_->dataset();
    json["row"] = row;
    json["key"] = key_of(table.get(), rows.ids[row]);
    json["expected_key"] = key_of(table.get(), whole.ids[row]);
  }
  json["differs"] = rows.ids != whole.ids ? "the samples"
                    : rows.hashes != whole.hashes
                        ? "the bytes"
                        : "nothing when it is made once more: a batch is not "
                          "the same each time";
  listed_.push_back(std::move(json));
}

Json Verification::result() {
  Json json;
  json["steps"] = steps_;
  json["epochs"] =
      static_cast<double>(steps_) / static_cast<double>(per_epoch_);
  json["points"] = saved_.size();
  json["chains"] = check_.chains;
  json["restarts"] = restarts_;
  json["most_ranks"] = most_ranks_;
  json["divergences"] = divergences_;
  json["first_divergences"] = listed_;
  json["state_bytes"] = state_bytes_;
  json["in_place_ms"] = in_place_.json();
  json["resume_ms"] = resumed_.json();
  return json;
}

}  // namespace

Json verify_resume(const Job& job, const ResumeCheck& check) {
  check_numbers(check);
  return Verification(job, check).run();
}

}  // namespace penstock
