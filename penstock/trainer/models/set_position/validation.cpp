#include "penstock/trainer/models/set_position/validation.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

double deviations_within_90() { return std::sqrt(-2 * std::log(0.1)); }

void Validation::add(const at::Tensor& loss, const at::Tensor& km,
                     const at::Tensor& deviations, const at::Tensor& weight) {
  auto exact = [](const at::Tensor& tensor) {
    return tensor.detach().to(at::kDouble);
  };
  seen_.push_back(
      at::stack({exact(loss), exact(km), exact(deviations), exact(weight)}));
}

Json Validation::take() {
  Json json{Json::Object{}};
  if (seen_.empty()) return json;
  at::Tensor all = at::cat(seen_, 1).to(at::kCPU).contiguous();
  seen_.clear();
  const double* rows = all.const_data_ptr<double>();
  auto count = static_cast<std::size_t>(all.size(1));
  const double most_deviations = deviations_within_90();
  std::vector<double> km;
  double loss = 0, sum_km = 0, within = 0;
  for (std::size_t row = 0; row < count; ++row) {
    if (rows[3 * count + row] == 0) continue;
    loss += rows[row];
    km.push_back(rows[count + row]);
    sum_km += km.back();
    within += rows[2 * count + row] <= most_deviations ? 1 : 0;
  }
  if (km.empty()) return json;
  auto kept = static_cast<double>(km.size());
  json["val_loss"] = loss / kept;
  json["val_median_km"] = median(std::move(km));
  json["val_mean_km"] = sum_km / kept;
  // A model that knows how sure it is has 0.9 here.
  json["val_within_90"] = within / kept;
  return json;
}

}  // namespace penstock
