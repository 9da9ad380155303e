#include "penstock/session/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace penstock {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view bytes) {
  try {
    read_safetensors(bytes, "w.safetensors");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    EXPECT_EQ(error.parts().code, "safetensors.damaged");
    EXPECT_EQ(error.parts().where, "w.safetensors");
    return error.what();
  }
  return "no error";
}

std::string with_header(const std::string& header, std::size_t data_bytes) {
  std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, 'x');
}

class Safetensors : public testing::Test {
 protected:
  std::array<float, 6> weights_{1, 2, 3, 4, 5, 6};
  std::array<std::int64_t, 1> count_{7};
  std::vector<NamedTensor> tensors_{
      {"w",
       {.data = reinterpret_cast<std::byte*>(weights_.data()),
        .shape = {2, 3}}},
      {"n",
       {.data = reinterpret_cast<std::byte*>(count_.data()),
        .dtype = Dtype::int64,
        .shape = {}}}};
};

TEST_F(Safetensors, ComeBackWithNamesShapesBytesAndRemarks) {
  Json remarks;
  remarks["by"] = "test";
  ModelState read =
      read_safetensors(safetensors(tensors_, remarks), "w.safetensors");
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.tensors[0].name, "w");
  EXPECT_EQ(read.tensors[0].view.shape, (Shape{2, 3}));
  EXPECT_EQ(std::memcmp(read.tensors[0].view.data, weights_.data(), 24), 0);
  EXPECT_EQ(read.tensors[1].view.dtype, Dtype::int64);
  EXPECT_EQ(std::memcmp(read.tensors[1].view.data, count_.data(), 8), 0);
  EXPECT_EQ(read.json, remarks);
}

TEST(SafetensorsDtypes, EachComesBackByItsNameInTheFile) {
  constexpr std::pair<Dtype, const char*> kNames[] = {
      {Dtype::float32, "F32"},   {Dtype::float64, "F64"},
      {Dtype::int64, "I64"},     {Dtype::boolean, "BOOL"},
      {Dtype::uint8, "U8"},      {Dtype::int8, "I8"},
      {Dtype::int16, "I16"},     {Dtype::uint16, "U16"},
      {Dtype::int32, "I32"},     {Dtype::uint32, "U32"},
      {Dtype::uint64, "U64"},    {Dtype::float16, "F16"},
      {Dtype::bfloat16, "BF16"},
  };
  static_assert(std::size(kNames) == kDtypes);
  std::array<std::byte, 24> memory;
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<std::byte>(i + 1);
  for (auto [dtype, name] : kNames) {
    TensorView view{.data = memory.data(), .dtype = dtype, .shape = {3}};
    std::string file = safetensors({{"t", view}});
    EXPECT_THAT(file, HasSubstr('"' + std::string(name) + '"'));
    ModelState read = read_safetensors(file, "w.safetensors");
    EXPECT_EQ(read.tensors.at(0).view.dtype, dtype) << name;
    ASSERT_EQ(read.tensors[0].view.bytes(), view.bytes()) << name;
    EXPECT_EQ(std::memcmp(read.tensors[0].view.data, view.data, view.bytes()),
              0);
  }
}

TEST_F(Safetensors, AFileCutAnywhereIsRefused) {
  std::string whole = safetensors(tensors_);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal(whole.substr(0, size)), "no error") << size;
}

TEST(SafetensorsBounds, NothingOutsideTheFileIsRead) {
  for (const char* header :
       {R"({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 17]}})",
        R"({"w": {"dtype": "F32", "shape": [4], "data_offsets": [8, 24]}})",
        R"({"w": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}})",
        R"({"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 16]}})",
        R"({"w": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}})",
        R"({"w": {"dtype": "F32", "shape": [4], "data_offsets": [16]}})",
        // The product of these extents wraps around to 16 bytes.
        R"({"w": {"dtype": "F32", "shape": [4611686018427387904, 4, 4],)"
        R"( "data_offsets": [0, 16]}})"})
    EXPECT_THAT(refusal(with_header(header, 16)), HasSubstr("'w'")) << header;
}

TEST(SafetensorsBounds, TensorsThatShareBytesAreRefused) {
  EXPECT_THAT(
      refusal(with_header(
          R"({"v": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},)"
          R"( "w": {"dtype": "F32", "shape": [1], "data_offsets": [12, 16]}})",
          16)),
      testing::AllOf(HasSubstr("'v' and 'w'"), HasSubstr("share")));
}

TEST(SafetensorsBounds, AFileOfTorchSaveIsConvertedFirst) {
  for (const char* begin : {"PK\3\4", "\x80\2"})
    EXPECT_THAT(refusal(begin + std::string(100, 'x')),
                testing::AllOf(HasSubstr("torch.save() wrote"),
                               HasSubstr("safetensors.torch.save_file(")));
}

TEST(SafetensorsBounds, AHeaderThatIsNoneIsRefused) {
  EXPECT_THAT(refusal(with_header("[1, 2]", 0)),
              HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(with_header("{nonsense", 0)), HasSubstr("JSON"));
  EXPECT_THAT(refusal(std::string(8, '\xff')), HasSubstr("longer than"));
  EXPECT_THAT(
      refusal(with_header(
          R"({"w": {"dtype": "F8", "shape": [], "data_offsets": [0, 0]}})", 0)),
      testing::AllOf(HasSubstr("F8"), HasSubstr("BF16")));
}

}  // namespace
}  // namespace penstock
