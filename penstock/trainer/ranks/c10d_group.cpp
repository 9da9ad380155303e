#include "penstock/trainer/ranks/c10d_group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <type_traits>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/log.h"
#include "penstock/base/tensor_limit.h"
#include "penstock/session/session.h"
#include "penstock/trainer/borrowed.h"
#include "penstock/trainer/ranks/nccl_plugin.h"
#include "penstock/trainer/ranks/network_interface.h"

// The ranks meet in a store, a small server of keys and texts (c10d::TCPStore),
// and then speak with each other over gloo's own connections.
//
// 1. A rank that fails writes its error to the store before it leaves; the
//    first one stays. A rank that dies cannot, but its connections break: those
//    of gloo, and where gloo misses that, its lifeline (RankLifelines).
// 2. So a collective that throws means: another rank has left. Only its
//    neighbours in that collective notice: each survivor closes its own
//    connections first, so that the news goes round. Then it enters itself in a
//    list of the store and waits for a moment: the list shows who is missing,
//    or the error that came first is there.
// 3. Rank 0 serves the store, unless the launcher does, and leaves last.
//
// c10d is no promised interface: what is used of it is in this file alone.
namespace penstock {
namespace {

using namespace std::chrono_literals;

constexpr auto kFindMaster = 10s;
constexpr auto kFindRanks = 300s;
constexpr auto kLongestStep = 30min;  // as torch.distributed
constexpr auto kListSurvivors = 3s;
constexpr auto kLeaveTogether = 5s;
constexpr auto kAskAgain = 20ms;
constexpr auto kLookForOthers = 500ms;
constexpr std::size_t kBucketBytes = 25 << 20;  // as DistributedDataParallel

static_assert(std::is_trivially_copyable_v<Ballot>);

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

std::string text_of(const RankPlace& place) {
  return "rank " + std::to_string(place.rank.rank) + " of " +
         std::to_string(place.rank.world) + " on " + host_name();
}

std::string master_text(const RankPlace& place) {
  return place.master + ":" + std::to_string(place.port);
}

std::string first_line(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text =
      torch != nullptr ? torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

[[noreturn]] void refuse_store(const RankPlace& place, std::string why) {
  const bool serves = place.rank.rank == 0 && !place.store_is_served;
  if (serves)
    throw Error(ErrorKind::request,
                {.code = "ranks.port",
                 .what = "rank 0 cannot serve the other ranks",
                 .where = master_text(place),
                 .why = std::move(why),
                 .next = "set MASTER_PORT to a free port on all ranks, and "
                         "MASTER_ADDR to a host name of this machine"});
  throw Error(ErrorKind::request,
              {.code = "ranks.master",
               .what = "cannot reach the other ranks",
               .where = text_of(place) + ", " + master_text(place),
               .why = "no answer came within 10 s: " + std::move(why),
               .next = "start rank 0 on that host, and check MASTER_ADDR, "
                       "MASTER_PORT and the firewall between the machines"});
}

c10::intrusive_ptr<c10d::Store> open_store(const RankPlace& place) {
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.isServer = place.rank.rank == 0 && !place.store_is_served;
  options.waitWorkers = false;
  options.timeout = kFindMaster;
  // c10d would try again when the time is over, and takes up to twice as long.
  if (!options.isServer)
    if (std::string why =
            why_unreachable(place.master, place.port, kFindMaster);
        !why.empty())
      refuse_store(place, std::move(why));
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(place.master, options);
    store->setTimeout(kFindRanks);
    return c10::make_intrusive<c10d::PrefixStore>("penstock/" + place.attempt,
                                                  std::move(store));
  } catch (const std::exception& error) {
    refuse_store(place, first_line(error));
  }
}

c10::intrusive_ptr<c10d::ProcessGroupGloo> open_gloo(
    const c10::intrusive_ptr<c10d::Store>& store, const RankPlace& place) {
  auto options = c10d::ProcessGroupGloo::Options::create(kLongestStep);
  const char* named = std::getenv("GLOO_SOCKET_IFNAME");
  const std::string interface =
      named != nullptr ? named : interface_to(place.master, place.port);
  options->devices.push_back(
      interface.empty()
          ? c10d::ProcessGroupGloo::createDefaultDevice()
          : c10d::ProcessGroupGloo::createDeviceForInterface(interface));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      store, place.rank.rank, place.rank.world, std::move(options));
}

class C10dGroup final : public RankGroup {
 public:
  explicit C10dGroup(const RankPlace& place)
      : RankGroup({.place = place, .backend = "gloo", .hosts = {}}),
        store_(open_store(place)) {
    talk("finding the other ranks", [&] { gloo_ = open_gloo(store_, place); });
    count_new_threads();
    facts_.hosts = gather(host_name());
    lifelines_.emplace(rank(), place.master, [this](const std::string& mine) {
      return gather(mine);
    });
    test();
  }

  std::vector<std::string> gather(const std::string& mine) override {
    std::vector<std::string> texts;
    talk("exchanging texts", [&] {
      at::Tensor length = at::full({1}, std::ssize(mine), at::kLong);
      const std::vector<at::Tensor> lengths = all_gather(length);
      std::int64_t longest = 1;
      for (const at::Tensor& one : lengths)
        longest = std::max(longest, one.item<std::int64_t>());
      at::Tensor bytes = at::zeros({longest}, at::kByte);
      std::memcpy(bytes.mutable_data_ptr(), mine.data(), mine.size());
      const std::vector<at::Tensor> all = all_gather(bytes);
      for (std::size_t i = 0; i < all.size(); ++i)
        texts.emplace_back(
            static_cast<const char*>(all[i].const_data_ptr()),
            static_cast<std::size_t>(lengths[i].item<std::int64_t>()));
    });
    return texts;
  }

  void copy_from_first(std::span<const TensorView> tensors) override {
    talk("copying weights from rank 0", [&] {
      in_buckets(tensors, [&](at::Tensor bucket) {
        std::vector<at::Tensor> one{std::move(bucket)};
        await(*backend_of(one[0]).broadcast(one), one[0]);
      });
    });
  }

  void report(const std::string& failure) noexcept override {
    // That a rank is lost is told by the list, and is no failure of this one.
    if (lost_) return;
    failed_ = true;
    try {
      store_->setTimeout(kListSurvivors);
      store_->compareSet("failure", "", failure);
    } catch (const std::exception& error) {
      log(LogLevel::warning,
          "cannot report an error to the other ranks: " + first_line(error));
    }
  }

  void leave() noexcept override {
    if (failed_)
      close_connections();  // the others hear of it by that
    else if (lifelines_)
      lifelines_->leave();
    try {
      store_->setTimeout(kLeaveTogether);
      store_->add("left", 1);
      if (rank().rank != 0 || facts_.place.store_is_served) return;
      const auto until = std::chrono::steady_clock::now() + kLeaveTogether;
      while (store_->add("left", 0) < rank().world - missing_ &&
             std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(kAskAgain);
    } catch (const std::exception& error) {
      log(LogLevel::debug, "leaving the other ranks: " + first_line(error));
    }
  }

 private:
  std::vector<Ballot> exchange(const Ballot& mine) override {
    std::vector<Ballot> ballots(static_cast<std::size_t>(rank().world));
    talk("voting on a step", [&] {
      at::Tensor bytes =
          at::empty({static_cast<std::int64_t>(sizeof(Ballot))}, at::kByte);
      std::memcpy(bytes.mutable_data_ptr(), &mine, sizeof(Ballot));
      const std::vector<at::Tensor> all = all_gather(bytes);
      for (std::size_t i = 0; i < all.size(); ++i)
        std::memcpy(&ballots[i], all[i].const_data_ptr(), sizeof(Ballot));
    });
    return ballots;
  }

  void add_up(std::span<const TensorView> tensors) override {
    talk("adding gradients over the ranks", [&] {
      in_buckets(tensors, [&](at::Tensor bucket) {
        std::vector<at::Tensor> one{std::move(bucket)};
        await(*backend_of(one[0]).allreduce(one), one[0]);
      });
    });
  }

  /// Runs a collective. One that throws has lost a rank.
  template <class Work>
  void talk(const char* doing, Work work) {
    if (lost_) throw Error(*lost_);
    const TensorLimit none(SIZE_MAX);  // a rank alone cannot stop half-way
    try {
      work();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      refuse_lost(doing, first_line(error));
    }
  }

  std::vector<at::Tensor> all_gather(const at::Tensor& mine) {
    std::vector<std::vector<at::Tensor>> all(1);
    for (int i = 0; i < rank().world; ++i)
      all[0].push_back(at::empty_like(mine));
    std::vector<at::Tensor> one{mine};
    await(*gloo_->allgather(all, one), mine);
    return std::move(all[0]);
  }

  /// Ends the wait for a rank that has gone, where gloo has not noticed.
  void await(c10d::Work& work, const at::Tensor& of) {
    if (of.is_cuda()) {
      work.wait();
      return;
    }
    for (int looks = 0;;) {
      try {
        work.wait(kLookForOthers);
        return;
      } catch (const std::exception&) {
        if (work.isCompleted()) {  // perhaps just after its time was over
          work.wait();
          return;
        }
      }
      const bool gone = lifelines_ && !lifelines_->gone().empty();
      looks = gone ? looks + 1 : 0;
      if (looks < 2) continue;  // gloo may be about to notice
      stuck_ = true;
      throw std::runtime_error("its process has ended");
    }
  }

  c10d::Backend& backend_of(const at::Tensor& bucket) {
    if (bucket.is_cuda()) return *nccl_;
    return *gloo_;
  }

  /// On the GPU of `like` where NCCL can add there, else on the host.
  at::Tensor empty_bucket(std::int64_t numbers, const at::Tensor& like) {
    const bool stays = like.is_cuda() && has_nccl();
    return at::empty({numbers},
                     stays ? like.options() : like.options().device(at::kCPU));
  }

  /// Whether all ranks can use NCCL: all of them find out together.
  bool has_nccl() {
    if (asked_nccl_) return nccl_ != nullptr;
    asked_nccl_ = true;
    const NcclPlugin* plugin = nullptr;
    std::string why;
    try {
      plugin = &nccl_plugin();
    } catch (const Error& error) {
      why = text_of(facts_.place) + ": " + error.what();
    }
    for (const std::string& of_rank : gather(why))
      if (!of_rank.empty()) {
        log(LogLevel::warning, "gradients are added on the host: " + of_rank);
        return false;
      }
    nccl_ = open_nccl(*plugin, store_, facts_.place);
    facts_.backend = "nccl";
    return true;
  }

  /// Copies tensors of one dtype after the other into buckets, which `work`
  /// changes, and back.
  template <class Work>
  void in_buckets(std::span<const TensorView> tensors, Work work) {
    const at::NoGradGuard no_graph;
    for (std::size_t first = 0; first < tensors.size();) {
      std::size_t end = first, bytes = 0;
      std::int64_t numbers = 0;
      while (end < tensors.size() &&
             tensors[end].dtype == tensors[first].dtype &&
             tensors[end].memory == tensors[first].memory &&
             (end == first || bytes + tensors[end].bytes() <= kBucketBytes)) {
        bytes += tensors[end].bytes();
        numbers += elements_of(tensors[end].shape);
        ++end;
      }
      const auto some = tensors.subspan(first, end - first);
      at::Tensor bucket = empty_bucket(numbers, borrowed(some[0]));
      std::int64_t at = 0;
      for (const TensorView& one : some) {
        const std::int64_t length = elements_of(one.shape);
        bucket.narrow(0, at, length).copy_(borrowed(one).view({length}));
        at += length;
      }
      work(bucket);
      at = 0;
      for (const TensorView& one : some) {
        const std::int64_t length = elements_of(one.shape);
        borrowed(one).view({length}).copy_(bucket.narrow(0, at, length));
        at += length;
      }
      first = end;
    }
  }

  /// One number over all ranks, before anything depends on it.
  void test() {
    double number = rank().rank + 1;
    const TensorView view{.data = reinterpret_cast<std::byte*>(&number),
                          .dtype = Dtype::float64,
                          .shape = {1}};
    sum(std::span(&view, 1));
    const double expected = 0.5 * rank().world * (rank().world + 1);
    if (number == expected) return;
    throw Error(ErrorKind::internal,
                {.code = "ranks.self_test",
                 .what = "the ranks cannot add numbers",
                 .where = text_of(facts_.place),
                 .why = "the sum of 1 to " + std::to_string(rank().world) +
                        " is " + std::to_string(number) + " by gloo",
                 .next = "report this error with the version of torch"});
  }

  [[noreturn]] void refuse_lost(const char* doing, const std::string& why) {
    close_connections();
    std::string missing = "rank 0" + host_of(0) + " with the store";
    try {
      store_->setTimeout(kListSurvivors);
      missing = missing_ranks();
    } catch (const Error& reported) {
      lost_.emplace(reported);
    } catch (const std::exception& error) {
      log(LogLevel::debug, "the store of the ranks: " + first_line(error));
    }
    if (!lost_)
      lost_.emplace(
          ErrorKind::device,
          ErrorParts{.code = "ranks.lost",
                     .what = "lost another rank while " + std::string(doing),
                     .where = missing,
                     .why = why,
                     .next = "look at what that rank printed last; then start "
                             "all ranks again with --resume latest"});
    throw Error(*lost_);
  }

  void close_connections() {
    if (nccl_ != nullptr) nccl_->abort();
    // Its threads end with their work.
    if (stuck_)
      static_cast<void>(gloo_.release());
    else
      gloo_.reset();
    lifelines_.reset();
  }

  std::string host_of(int rank) const {
    const auto place = static_cast<std::size_t>(rank);
    return place < facts_.hosts.size() ? " on " + facts_.hosts[place] : "";
  }

  /// Waits until all have entered the list of survivors, or for a moment; the
  /// ranks that have not. Throws the error that another rank has reported.
  std::string missing_ranks() {
    store_->add(survivor(rank().rank), 1);
    const auto until = std::chrono::steady_clock::now() + kListSurvivors;
    std::string missing;
    do {
      refuse_reported();
      missing.clear();
      missing_ = 0;
      for (int i = 0; i < rank().world; ++i)
        if (!store_->check({survivor(i)})) {
          missing += (missing_++ == 0 ? "rank " : ", rank ") +
                     std::to_string(i) + host_of(i);
        }
      if (missing.empty()) return "a connection between the ranks";
      std::this_thread::sleep_for(kAskAgain);
    } while (std::chrono::steady_clock::now() < until);
    return missing;
  }

  static std::string survivor(int rank) {
    return "survivor/" + std::to_string(rank);
  }

  void refuse_reported() {
    if (!store_->check({"failure"})) return;
    const std::vector<std::uint8_t> bytes = store_->get("failure");
    refuse_failure(std::string(bytes.begin(), bytes.end()));
  }

  const c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  c10::intrusive_ptr<c10d::Backend> nccl_;
  bool asked_nccl_ = false;
  std::optional<RankLifelines> lifelines_;
  bool stuck_ = false;   // a thread of gloo waits for a rank that has gone
  bool failed_ = false;  // this rank
  int missing_ = 0;      // ranks that are lost, and will not leave
  std::optional<Error> lost_;
};

}  // namespace

std::unique_ptr<RankGroup> open_ranks(const RankPlace& place) {
  return std::make_unique<C10dGroup>(place);
}

}  // namespace penstock
