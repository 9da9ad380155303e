#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "penstock/session/session.h"
#include "penstock/trainer/models/image_classifier/network.h"
#include "penstock/trainer/state.h"

// Against torchvision: tests/data/image_classifier/make_golden.py, whose
// formula of the weights is here once more.
namespace penstock {
namespace {

using Network = ImageClassifier::Network;
using Mode = ClassNetwork::Mode;

const std::string kGolden =
    std::string(PENSTOCK_TEST_DATA) + "/image_classifier/golden.json";

std::uint32_t named(const std::string& name) {
  std::uint32_t value = 2166136261U;
  for (char byte : name)
    value = (value ^ static_cast<std::uint8_t>(byte)) * 16777619U;
  return value;
}

at::Tensor numbers(const std::string& name, at::IntArrayRef shape) {
  at::Tensor all = at::empty(shape, at::kDouble);
  auto* value = all.mutable_data_ptr<double>();
  const std::uint64_t first = named(name);
  for (std::int64_t i = 0; i < all.numel(); ++i) {
    const auto mixed = static_cast<std::uint32_t>(
        (first + static_cast<std::uint64_t>(i)) * 2654435761U);
    value[i] = static_cast<double>(mixed) / 0x1p32 - 0.5;
  }
  return all;
}

at::Tensor filled(const Parameter& of) {
  if (of.name.ends_with("num_batches_tracked")) return of.value * 0 + 3;
  at::Tensor value = numbers(of.name, of.value.sizes());
  if (of.name.ends_with("running_var")) return value + 1;
  if (of.value.dim() >= 2)
    return value * (3 / std::sqrt(static_cast<double>(of.value[0].numel())));
  return of.name.ends_with(".weight") ? 1 + 0.2 * value : value;
}

std::unique_ptr<ClassNetwork> network(
    Network which, bool channels_last = false, bool recompute = false,
    const std::shared_ptr<const WeightFiles>& files = nullptr,
    std::int64_t classes = 7) {
  ImageNetworkOptions options{
      .settings = {.network = which, .channels_last = channels_last},
      .classes = classes,
      .height = 64,
      .width = 64,
      .recompute = recompute};
  return make_image_network(options, at::kFloat, files);
}

std::vector<Parameter> all_of(const ClassNetwork& network) {
  std::vector<Parameter> all = network.layers().parameters();
  for (const Parameter& one : network.layers().buffers()) all.push_back(one);
  return all;
}

void fill(const ClassNetwork& network) {
  const at::NoGradGuard no_graph;
  for (const Parameter& one : all_of(network))
    at::Tensor(one.value).copy_(filled(one));
}

double off(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

class NetworkGolden
    : public testing::TestWithParam<std::pair<const char*, Network>> {
 public:
  const Json golden =
      *Json::parse(real_files().read(kGolden), kGolden).find(GetParam().first);
  const at::Tensor pictures =
      numbers("pictures", {2, 3, 64, 64}).to(at::kFloat);

  at::Tensor expected() const {
    at::Tensor logits = at::empty({2, 7}, at::kFloat);
    for (std::int64_t r = 0; r < 2; ++r)
      for (std::int64_t c = 0; c < 7; ++c)
        logits[r][c] = golden.find("logits")
                           ->array()[static_cast<std::size_t>(r)]
                           .array()[static_cast<std::size_t>(c)]
                           .number();
    return logits;
  }
};
INSTANTIATE_TEST_SUITE_P(
    Networks, NetworkGolden,
    testing::Values(std::pair("resnet18", Network::resnet18),
                    std::pair("resnet50", Network::resnet50),
                    std::pair("vit_s16", Network::vit_s16)));

TEST_P(NetworkGolden, NamesAndShapesAreThoseOfTorchvision) {
  std::map<std::string, std::string> shapes, theirs;
  for (const Parameter& one : all_of(*network(GetParam().second))) {
    Json shape{Json::Array{}};
    for (std::int64_t extent : one.value.sizes()) shape.push_back(extent);
    shapes[one.name] = shape.dump();
  }
  for (const auto& [name, shape] : golden.find("tensors")->object())
    theirs[name] = shape.dump();
  EXPECT_EQ(shapes, theirs);
}

TEST_P(NetworkGolden, LogitsAreThoseOfTorchvision) {
  const at::NoGradGuard no_graph;
  for (bool last : {false, true}) {
    auto model = network(GetParam().second, last);
    fill(*model);
    at::Tensor input =
        last ? pictures.contiguous(at::MemoryFormat::ChannelsLast) : pictures;
    EXPECT_LT(off((*model)(input, Mode::look), expected()), 1e-4);
  }
}

TEST_P(NetworkGolden, ComputingAgainGivesTheSameGradientsAndStatistics) {
  auto plain = network(GetParam().second);
  auto again = network(GetParam().second, false, true);
  for (const ClassNetwork* model : {plain.get(), again.get()}) {
    fill(*model);
    (*model)(pictures, Mode::learn).square().mean().backward();
  }
  const std::vector<Parameter> a = all_of(*plain), b = all_of(*again);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i].value.equal(b[i].value)) << a[i].name;
    if (!a[i].value.requires_grad()) continue;
    EXPECT_TRUE(a[i].value.grad().equal(b[i].value.grad())) << a[i].name;
  }
}

TEST_P(NetworkGolden, AFileOfOtherClassesGivesAllButTheLastLayer) {
  const std::string path = testing::TempDir() + "classes_" +
                           std::to_string(::getpid()) + ".safetensors";
  auto model = network(GetParam().second);
  fill(*model);
  std::ofstream(path) << safetensors(state_of(all_of(*model)).tensors);
  auto files = std::make_shared<WeightFiles>(path);
  auto same = network(GetParam().second, false, false, files);
  const at::NoGradGuard no_graph;
  EXPECT_LT(off((*same)(pictures, Mode::look), expected()), 1e-4);
  auto other = network(GetParam().second, false, false, files, 3);
  EXPECT_EQ((*other)(pictures, Mode::look).sizes(), (at::IntArrayRef{2, 3}));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace penstock
