#include "penstock/transforms/mixup/mixup.h"

#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "penstock/base/settings.h"
#include "penstock/transforms/mixup/beta.h"
#include "penstock/transforms/operations.h"

namespace penstock {
namespace {

constexpr double kLeastAlpha = 1e-3, kMostAlpha = 1e3;

const SettingsTable<Mixup>& mixup_settings() {
  static const SettingsTable<Mixup> table =
      SettingsTable<Mixup>()
          .names("mixup", &Mixup::outputs, "float tensors that are mixed")
          .number("alpha", &Mixup::alpha, kLeastAlpha, kMostAlpha,
                  "lambda is drawn of Beta(alpha, alpha)")
          .texts("labels", &Mixup::labels,
                 "tensors whose partner's rows are added as NAME_mixed");
  return table;
}

template <class Number>
void mix(std::byte* row, const std::byte* partner, std::size_t bytes,
         float lambda) {
  auto own = static_cast<Number>(lambda);
  Number other = 1 - own;
  auto* to = reinterpret_cast<Number*>(row);
  const auto* from = reinterpret_cast<const Number*>(partner);
  for (std::size_t i = 0; i < bytes / sizeof(Number); ++i)
    to[i] = own * to[i] + other * from[i];
}

class BoundMixup final : public BoundOperation {
 public:
  BoundMixup(const std::vector<Output>& outputs, const Mixup& mixup,
             std::vector<std::size_t> uses, std::vector<Output> adds)
      : BoundOperation(outputs, std::move(uses), std::move(adds)),
        alpha_(mixup.alpha),
        mixed_(mixup.outputs.size()) {
    for (std::size_t place : this->uses()) used_.push_back(outputs[place]);
  }

  void apply(const OperationBatch& batch,
             OperationScratch& scratch) const override {
    constexpr std::uint64_t kLambda = 0x6c616d6264;      // "lambd"
    constexpr std::uint64_t kPartners = 0x706172746e65;  // "partne"
    Random draws = batch.key.random(kLambda);
    auto lambda = static_cast<float>(draw_beta(draws, alpha_));
    std::vector<std::int64_t>& order = scratch.numbers;
    order.assign(batch.live.begin(), batch.live.end());
    Random places = batch.key.random_of_rank(kPartners);
    for (std::size_t left = order.size(); left > 1; --left)
      std::swap(order[left - 1], order[places.below(left)]);
    for (std::size_t t = 0; t < mixed_; ++t)
      if (order.size() > 1)
        mix_tensor(used_[t], batch.tensors[t], order, lambda, scratch.bytes);
    for (std::size_t t = mixed_; t < used_.size(); ++t)
      add_partners(batch.tensors[t], batch.tensors[t + used_.size() - mixed_],
                   used_[t].bytes(), batch.rows, order);
    if (!adds().empty()) {
      auto* lambdas = reinterpret_cast<float*>(batch.tensors.back());
      std::fill_n(lambdas, batch.rows, 0.0F);
      for (std::int64_t row : order) lambdas[row] = lambda;
    }
  }

 private:
  // Each row is read by the one before it in the order, so that one row aside
  // is enough.
  static void mix_tensor(const Output& output, std::byte* rows,
                         std::span<const std::int64_t> order, float lambda,
                         std::vector<std::byte>& aside) {
    std::size_t bytes = output.bytes();
    auto at = [&](std::int64_t row) {
      return rows + static_cast<std::size_t>(row) * bytes;
    };
    aside.assign(at(order.front()), at(order.front()) + bytes);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::byte* partner =
          i + 1 < order.size() ? at(order[i + 1]) : aside.data();
      if (output.dtype == Dtype::float32)
        mix<float>(at(order[i]), partner, bytes, lambda);
      else
        mix<double>(at(order[i]), partner, bytes, lambda);
    }
  }

  static void add_partners(const std::byte* labels, std::byte* to,
                           std::size_t bytes, std::int64_t rows,
                           std::span<const std::int64_t> order) {
    std::memset(to, 0, static_cast<std::size_t>(rows) * bytes);
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::int64_t partner = order[i + 1 < order.size() ? i + 1 : 0];
      std::memcpy(to + static_cast<std::size_t>(order[i]) * bytes,
                  labels + static_cast<std::size_t>(partner) * bytes, bytes);
    }
  }

  const double alpha_;
  const std::size_t mixed_;  // the first of what it uses; the rest are labels
  std::vector<Output> used_;
};

class MixupKind final : public BatchOperation {
 public:
  MixupKind(Mixup mixup, std::string path)
      : mixup_(std::move(mixup)), path_(std::move(path)) {}

  std::unique_ptr<BoundOperation> bind(
      const std::vector<Output>& outputs) const override {
    std::vector<std::size_t> uses;
    std::vector<Output> adds;
    std::set<std::string> seen;
    for (const std::string& name : mixup_.outputs) {
      uses.push_back(find_output(outputs, name, path_ + ".mixup"));
      Dtype dtype = outputs[uses.back()].dtype;
      if (dtype != Dtype::float32 && dtype != Dtype::float64)
        refuse_operation(
            path_ + ".mixup",
            "'" + name + "' is " + std::string(name_of(dtype)) +
                ", expected float32 or float64",
            "make it a float tensor, or name it in 'labels', which "
            "stay as they are");
      seen.insert(name);
    }
    for (const std::string& name : mixup_.labels) {
      uses.push_back(find_output(outputs, name, path_ + ".labels"));
      if (!seen.insert(name).second)
        refuse_operation(path_ + ".labels", "'" + name + "' is named twice",
                         "name it once, in 'mixup' or in 'labels'");
      adds.push_back(outputs[uses.back()]);
      adds.back().name += "_mixed";
    }
    if (!adds.empty()) adds.push_back({.name = "mixup_lambda"});
    return std::make_unique<BoundMixup>(outputs, mixup_, std::move(uses),
                                        std::move(adds));
  }

  Json recipe() const override { return mixup_settings().shown(mixup_); }

 private:
  const Mixup mixup_;
  const std::string path_;
};

}  // namespace

std::shared_ptr<const BatchOperation> make_mixup(Mixup mixup,
                                                 std::string path) {
  if (!(mixup.alpha >= kLeastAlpha && mixup.alpha <= kMostAlpha))
    refuse_operation(
        path + ".alpha",
        "found " + std::to_string(mixup.alpha) + ", expected 0.001 to 1000",
        "a small alpha mixes little, 1 draws lambda evenly");
  return std::make_shared<MixupKind>(std::move(mixup), std::move(path));
}

OperationDescriptor mixup_operation() {
  return {.key = "mixup",
          .settings = mixup_settings().schemas(),
          .make = [](Spec& entry) {
            Mixup mixup;
            mixup_settings().read(entry, mixup);
            return make_mixup(std::move(mixup), entry.path());
          }};
}

}  // namespace penstock
