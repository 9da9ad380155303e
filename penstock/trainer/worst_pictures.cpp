#include "penstock/trainer/worst_pictures.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "penstock/trainer/outcome_details.h"

namespace penstock {
namespace {

/// [rows, 3, height, width], uint8: no side is longer than kSide.
at::Tensor thumbnails_of(const at::Tensor& pictures) {
  at::Tensor x = pictures.to(at::kFloat);
  const double longer = static_cast<double>(std::max(x.size(2), x.size(3)));
  const double scale =
      std::min(1.0, static_cast<double>(WorstPictures::kSide) / longer);
  auto small = [&](std::int64_t side) {
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>(static_cast<double>(side) * scale));
  };
  x = at::adaptive_avg_pool2d(x, {small(x.size(2)), small(x.size(3))});
  x = x.size(1) >= 3 ? x.slice(1, 0, 3)
                     : x.slice(1, 0, 1).expand({-1, 3, -1, -1});
  if (pictures.scalar_type() != at::kByte) {
    const at::Tensor least = x.amin({1, 2, 3}, /*keepdim=*/true);
    const at::Tensor most = x.amax({1, 2, 3}, /*keepdim=*/true);
    x = (x - least) / (most - least).clamp_min(1e-12) * 255;
  }
  return x.round().clamp(0, 255).to(at::kByte);
}

std::string hexadecimal(const std::uint8_t* bytes, std::size_t count) {
  static constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t at = 0; at < count; ++at) {
    text += kDigits[bytes[at] >> 4];
    text += kDigits[bytes[at] & 15];
  }
  return text;
}

}  // namespace

void WorstPictures::add(const at::Tensor& pictures, const at::Tensor& loss,
                        std::span<const SampleId> samples) {
  const auto most = static_cast<std::int64_t>(kWorstRows);
  const auto first = static_cast<std::int64_t>(samples_.size());
  samples_.insert(samples_.end(), samples.begin(), samples.end());
  samples_.resize(static_cast<std::size_t>(first + loss.size(0)), -1);
  auto [losses, places] =
      loss.detach().to(at::kFloat).topk(std::min(most, loss.size(0)));
  at::Tensor rows = places + first;
  at::Tensor small = thumbnails_of(pictures.index_select(0, places));
  if (pictures_.defined()) {
    losses = at::cat({losses_, losses});
    rows = at::cat({rows_, rows});
    small = at::cat({pictures_, small});
    std::tie(losses, places) = losses.topk(std::min(most, losses.size(0)));
    rows = rows.index_select(0, places);
    small = small.index_select(0, places);
  }
  losses_ = losses, rows_ = rows, pictures_ = small;
}

void WorstPictures::take(Json& details) {
  if (!pictures_.defined()) return;
  const at::Tensor small = std::exchange(pictures_, {})
                               .permute({0, 2, 3, 1})
                               .to(at::kCPU)
                               .contiguous();
  const at::Tensor rows = std::exchange(rows_, {}).to(at::kCPU).contiguous();
  const std::vector<SampleId> samples = std::exchange(samples_, {});
  losses_.reset();
  std::map<SampleId, std::int64_t> kept;
  for (std::int64_t at = 0; at < rows.numel(); ++at)
    kept.emplace(samples[static_cast<std::size_t>(
                     rows.const_data_ptr<std::int64_t>()[at])],
                 at);
  if (!details.is_object() || details.find("worst") == nullptr) return;
  const std::int64_t bytes = small.size(1) * small.size(2) * small.size(3);
  Json worst(Json::Array{});
  for (const Json& entry : details.find("worst")->array()) {
    Json with = entry;
    const auto found = kept.find(entry.find("sample")->integer());
    if (found != kept.end()) {
      Json& picture = with["picture"];
      picture["height"] = small.size(1);
      picture["width"] = small.size(2);
      picture["rgb"] = hexadecimal(
          small.const_data_ptr<std::uint8_t>() + found->second * bytes,
          static_cast<std::size_t>(bytes));
    }
    worst.push_back(std::move(with));
  }
  details["worst"] = std::move(worst);
}

}  // namespace penstock
