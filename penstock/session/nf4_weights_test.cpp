#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "penstock/session/session.h"

// Against bitsandbytes: tests/data/nf4/make_golden.py.
namespace penstock {
namespace {

using testing::HasSubstr;

const std::string kGolden =
    std::string(PENSTOCK_TEST_DATA) + "/nf4/golden.safetensors";

template <class Number>
std::vector<Number> listed(const TensorView& view) {
  std::vector<Number> list(view.bytes() / sizeof(Number));
  std::memcpy(list.data(), view.data, view.bytes());
  return list;
}

class Nf4Golden : public testing::TestWithParam<std::string> {
 protected:
  const MappedWeights golden_{kGolden};
};
INSTANTIATE_TEST_SUITE_P(Types, Nf4Golden,
                         testing::Values("float32", "bfloat16", "float16",
                                         "nested"));

TEST_P(Nf4Golden, GivesTheCodesAndScalesOfBitsandbytes) {
  const bool nested = GetParam() == "nested";
  Nf4Tensors ours(golden_.at(GetParam() + ".values").view, nested);
  std::vector<NamedTensor> tensors = ours.named(GetParam() + ".weight");
  EXPECT_EQ(tensors.size(), nested ? 6U : 4U);
  if (nested) tensors.resize(1);  // the scales may differ: see below
  for (const NamedTensor& tensor : tensors) {
    SCOPED_TRACE(tensor.name);
    const TensorView& theirs = golden_.at(tensor.name).view;
    EXPECT_EQ(tensor.view.dtype, theirs.dtype);
    if (tensor.name.ends_with("bitsandbytes__nf4")) {
      EXPECT_EQ(Json::parse({reinterpret_cast<const char*>(tensor.view.data),
                             tensor.view.bytes()},
                            "ours"),
                Json::parse({reinterpret_cast<const char*>(theirs.data),
                             theirs.bytes()},
                            "theirs"));
      continue;
    }
    EXPECT_EQ(tensor.view.shape, theirs.shape);
    EXPECT_EQ(listed<std::uint8_t>(tensor.view), listed<std::uint8_t>(theirs));
  }
}

TEST_P(Nf4Golden, ReadsWeightsOfBitsandbytesBitForBit) {
  const std::optional<Nf4Parts> parts =
      nf4_parts(golden_, GetParam() + ".weight");
  ASSERT_TRUE(parts);
  const TensorView& theirs = golden_.at(GetParam() + ".dequantized").view;
  EXPECT_EQ(parts->shape, theirs.shape);
  EXPECT_EQ(parts->dtype, theirs.dtype);
  std::vector<std::byte> bytes(theirs.bytes());
  TensorView ours = theirs;
  ours.data = bytes.data();
  dequantize_nf4(parts->codes, parts->weight_scales(), ours);
  EXPECT_EQ(bytes, listed<std::byte>(theirs));
}

TEST(NestedScales, AreAsNearAsThoseOfBitsandbytes) {
  const MappedWeights golden(kGolden);
  const Nf4Parts theirs = *nf4_parts(golden, "nested.weight");
  const TensorView& values = golden.at("nested.values").view;
  const std::int64_t count = elements_of(values.shape);
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(nf4_bytes(count)));
  std::vector<float> scales(static_cast<std::size_t>(nf4_blocks(count)));
  quantize_nf4(values, codes, scales);
  const NestedScales ours = nested_scales(scales);
  EXPECT_EQ(theirs.scale_values,
            std::vector<float>(scale_values().begin(), scale_values().end()));
  const std::vector<float> back =
      scales_of(ours.codes, ours.scales, ours.mean, scale_values());
  const std::vector<float> other = theirs.weight_scales();
  for (std::size_t i = 0; i < scales.size(); ++i)
    EXPECT_LE(std::abs(back[i] - scales[i]),
              std::abs(other[i] - scales[i]) + 1e-6F);
}

/// What is refused of a weight "w" in a file with these tensors.
std::string refusal(const std::vector<NamedTensor>& tensors) {
  const std::string path = testing::TempDir() + "nf4_weights.safetensors";
  std::ofstream(path, std::ios::binary) << safetensors(tensors);
  try {
    if (!nf4_parts(MappedWeights(path), "w")) return "it is not quantised";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "model.weights");
    return error.what();
  }
  return "nothing was refused";
}

TEST(Nf4Parts, OfAnotherFormatAreRefusedByName) {
  std::vector<float> values(128, 0.5F);
  Nf4Tensors own(
      {.data = reinterpret_cast<std::byte*>(values.data()), .shape = {2, 64}},
      false);
  const std::vector<NamedTensor> good = own.named("w");
  EXPECT_EQ(refusal(good), "nothing was refused");
  EXPECT_EQ(refusal({good[0]}), "it is not quantised");
  // w, w.absmax, w.quant_map and w.quant_state, in this order.
  EXPECT_THAT(refusal({good[0], good[1], good[2]}),
              HasSubstr("the tensor has scales, but no quant_state"));
  std::vector<NamedTensor> fp4 = good;
  fp4[3].name = "w.quant_state.bitsandbytes__fp4";
  EXPECT_THAT(refusal(fp4), HasSubstr("the type is fp4, expected nf4"));
  auto with_state = [&](std::string state) {
    std::vector<NamedTensor> tensors = good;
    tensors[3].view.data = reinterpret_cast<std::byte*>(state.data());
    tensors[3].view.shape = {std::ssize(state)};
    return refusal(tensors);
  };
  EXPECT_THAT(
      with_state(R"({"quant_type": "nf4", "blocksize": 128, "dtype": "float32",
                     "shape": [2, 64]})"),
      HasSubstr("the blocksize is 128, expected 64"));
  EXPECT_THAT(
      with_state(R"({"quant_type": "nf4", "blocksize": 64, "dtype": "float32",
                     "shape": [2, 65]})"),
      HasSubstr("the codes are uint8 [64, 1], expected 65 numbers"));
  EXPECT_THAT(
      with_state(R"({"quant_type": "nf4", "blocksize": 64, "dtype": "int4",
                     "shape": [2, 64]})"),
      HasSubstr("names no shape and type"));
  std::vector<NamedTensor> other_values = good;
  other_values[2].view.data = reinterpret_cast<std::byte*>(values.data());
  EXPECT_THAT(refusal(other_values), HasSubstr("quant_map"));
}

}  // namespace
}  // namespace penstock
