#include "penstock/inspect/verify_resume.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "penstock/session/session.h"

// A row has a hash of its sample and of its part of every tensor. The batches
// of all ranks, one after the other, are the batch of a single one, so the hash
// of a step's row hashes does not depend on the number of ranks; and 8 bytes a
// step, and the position at each point, are all that is kept of the run without
// interruption. Only where they differ is its batch made once more, to find the
// row: at the end, so that its rows are not open beside those of a restart.

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

/// Without the padding at the end: how far a row is filled up depends on the
/// other rows of its rank.
std::span<const std::byte> without_padding(std::span<const std::byte> row,
                                           const BatchTensor& tensor) {
  while (row.size() >= tensor.bytes &&
         std::memcmp(row.last(tensor.bytes).data(), &tensor.padding,
                     tensor.bytes) == 0)
    row = row.first(row.size() - tensor.bytes);
  return row;
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
        row = without_padding(row, tensors[t]);
      hash = hash64(row, hash);
    }
    out.hashes.push_back(hash);
  }
}

/// A batch of samples that are packed has no rows of its own: it is one.
bool packed(Session& session) {
  return std::ranges::any_of(session.tensors(), [](const BatchTensor& tensor) {
    return tensor.what == BatchTensor::What::packed ||
           tensor.what == BatchTensor::What::offsets;
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

[[noreturn]] void refuse_numbers(std::string why, std::string next) {
  throw Error(ErrorKind::request,
              {.code = "resume.numbers",
               .what = "cannot verify with these numbers",
               .where = "the steps, points, chains and ranks",
               .why = std::move(why),
               .next = std::move(next)});
}

void check_numbers(const ResumeCheck& check) {
  if (check.steps < 0 || check.points < -1 || check.chains < 0 ||
      check.most_ranks < 1)
    refuse_numbers("found " + std::to_string(check.steps) + ", " +
                       std::to_string(check.points) + ", " +
                       std::to_string(check.chains) + " and " +
                       std::to_string(check.most_ranks),
                   "use numbers from 0 up, and at least one rank");
  if (check.points == 0 && check.chains == 0)
    refuse_numbers(
        "there are neither points nor chains, so nothing would be restarted",
        "set points, chains or both");
}

/// Why a batch depends on the number of ranks; empty: it does not.
std::string why_one_rank(Session& session, const Job& job) {
  if (packed(session)) return "the samples are packed";
  if (session.rows().facts().whole_batches)
    return "a function makes whole batches";
  return loader_options(job, Side::train).operations.empty()
             ? ""
             : "batch operations may mix the rows of a batch";
}

/// The first place at which they differ, or the length of the shorter one.
template <class T>
std::size_t first_other(const std::vector<T>& a, const std::vector<T>& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
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
    describe_found();
    return result();
  }

 private:
  /// A state in place: `state_` at this position.
  struct Point {
    std::int64_t step = 0;
    Position at;
  };
  /// A batch that differs.
  struct Found {
    std::int64_t step = 0;
    std::string where;
    Rows rows;
  };

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
  void note_point(std::int64_t step);
  void restart_in_place();
  void run_chain(std::int64_t chain);
  Job changed_job(Random& random) const;
  void compare(std::int64_t step, Rows rows, const std::string& where);
  void describe_found();
  Json description(const Found& found);
  Json result();

  const Job& job_;
  const ResumeCheck& check_;
  const std::shared_ptr<Device> device_;
  std::optional<Json> statistics_;
  std::unique_ptr<Session> whole_;  // the run without interruption
  bool packed_ = false;
  std::string why_one_rank_;  // empty: as many as were asked for
  int most_ranks_ = 1;
  std::int64_t steps_ = 0, per_epoch_ = 1;
  std::vector<std::uint64_t> expected_;  // by step
  std::vector<Point> points_;
  Json state_;
  std::size_t state_bytes_ = 0;
  SavedState beginning_;
  std::int64_t restarts_ = 0, divergences_ = 0;
  std::vector<Found> found_;  // the first
  Json::Array listed_;
  Times in_place_, resumed_;
};

void Verification::walk() {
  whole_ = open(job_, {}, read_rows());
  per_epoch_ = whole_->steps_per_epoch();
  steps_ = std::min(check_.steps > 0 ? check_.steps : 2 * per_epoch_,
                    steps_in_all(job_, whole_->order()));
  packed_ = packed(*whole_);
  why_one_rank_ = why_one_rank(*whole_, job_);
  most_ranks_ = why_one_rank_.empty() ? check_.most_ranks : 1;
  if (auto text = note_rows(beginning_, job_, whole_->rows(), whole_->order()))
    statistics_ = Json::parse(*text, "statistics");  // as a run reads them
  std::int64_t points =
      check_.points < 0 ? steps_ : std::min(check_.points, steps_);
  for (std::int64_t step = 0; step < steps_; ++step) {
    say("without interruption", step);
    // Of the steps [0, steps_), the first, the last and others between them.
    std::int64_t next = std::ssize(points_);
    if (next < points &&
        step >= (points == 1 ? 0 : next * (steps_ - 1) / (points - 1)))
      note_point(step);
    Rows rows;
    add(promised(whole_->next()), *whole_, rows);
    expected_.push_back(rows.hash());
  }
}

/// States differ in their position alone.
void Verification::note_point(std::int64_t step) {
  state_ = whole_->state();
  state_bytes_ = std::max(state_bytes_, state_.dump().size());
  points_.push_back({.step = step,
                     .at = {.epoch = state_.find("epoch")->integer(),
                            .step = state_.find("step")->integer()}});
}

void Verification::restart_in_place() {
  for (const Point& point : points_) {
    say("restarts in place", point.step);
    state_["epoch"] = point.at.epoch;
    state_["step"] = point.at.step;
    const Nanoseconds began = wall_clock().now();
    whole_->load_state(Json::parse(state_.dump(), "state"));
    Batch batch = promised(whole_->next());
    batch.wait();
    in_place_.add(wall_clock().now() - began);
    Rows rows;
    add(std::move(batch), *whole_, rows);
    compare(point.step, std::move(rows), "restart in place");
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

// A chain is a run that is stopped again and again, at random steps, and
// restarted with another number of ranks, workers and batches ahead each time.
// None of that may change a batch. Draws depend on the seed and the chain
// alone, so a failure can be repeated.
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
      compare(step, std::move(rows), where);
    }
    state.position = ranks.front()->position();
    state.steps_taken = step;
  }
}

void Verification::compare(std::int64_t step, Rows rows,
                           const std::string& where) {
  if (rows.hash() == expected_[static_cast<std::size_t>(step)]) return;
  ++divergences_;
  if (found_.size() < kListed)
    found_.push_back({.step = step, .where = where, .rows = std::move(rows)});
}

void Verification::describe_found() {
  if (found_.empty()) return;
  whole_ = open(job_, {}, read_rows());
  for (const Found& found : found_) listed_.push_back(description(found));
}

Json Verification::description(const Found& found) {
  const Rows& rows = found.rows;
  const Position at = place(found.step);
  say("describes what differs", found.step);
  whole_->seek(at);
  Rows whole;
  add(promised(whole_->next()), *whole_, whole);
  Json json;
  json["where"] = found.where;
  json["epoch"] = at.epoch;
  json["step"] = at.step;
  json["rows"] = rows.ids.size();
  json["expected_rows"] = whole.ids.size();
  const bool other_samples = rows.ids != whole.ids;
  // Of packed samples that are the same nobody knows which one's bytes differ.
  const std::size_t row = other_samples ? first_other(rows.ids, whole.ids)
                          : packed_     ? rows.ids.size()
                                    : first_other(rows.hashes, whole.hashes);
  if (row < std::min(rows.ids.size(), whole.ids.size())) {
    std::shared_ptr<const Dataset> opened = whole_->opened();
    json["row"] = row;
    json["key"] = key_of(*opened, rows.ids[row]);
    json["expected_key"] = key_of(*opened, whole.ids[row]);
  }
  json["differs"] = other_samples ? "the samples"
                    : rows.hashes != whole.hashes
                        ? "the bytes"
                        : "nothing when the batch is made once more: batches "
                          "are not deterministic";
  return json;
}

Json Verification::result() {
  Json json;
  json["steps"] = steps_;
  json["epochs"] =
      static_cast<double>(steps_) / static_cast<double>(per_epoch_);
  json["points"] = points_.size();
  json["chains"] = check_.chains;
  json["restarts"] = restarts_;
  json["most_ranks"] = most_ranks_;
  json["why_one_rank"] = why_one_rank_.empty() ? Json() : Json(why_one_rank_);
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
