#include "penstock/base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/base/error.h"

namespace penstock {
namespace {

using testing::HasSubstr;

enum class Edge { drop, keep };

struct Window {
  std::int64_t length = 10;
  std::optional<int> stride;
  double overlap = 0.5;
  bool padded = false;
  Edge edge = Edge::drop;
  std::optional<Edge> last;
  std::string name;
  std::vector<std::string> channels;
  std::vector<std::string> tags;
};

const SettingsTable<Window>& window_table() {
  static const SettingsTable<Window> table =
      SettingsTable<Window>()
          .integer("length", &Window::length, 1, 1000, "in samples")
          .integer("stride", &Window::stride, 1, 1000, "default: the length")
          .number("overlap", &Window::overlap, 0, 1, "")
          .boolean("padded", &Window::padded, "")
          .choice("edge", &Window::edge,
                  {{"drop", Edge::drop}, {"keep", Edge::keep}}, "")
          .choice("last", &Window::last,
                  {{"drop", Edge::drop}, {"keep", Edge::keep}}, "")
          .text("name", &Window::name, "as reports show it")
          .not_empty()
          .names("channels", &Window::channels, "")
          .texts("tags", &Window::tags, "")
          .check([](Spec& spec, Window& window) {
            if (window.stride && *window.stride > window.length)
              spec.refuse("stride", "it is larger than the length",
                          "write a smaller number");
          });
  return table;
}

Json document(const std::string& json) { return Json::parse(json, "test"); }

template <class T>
T parse(const SettingsTable<T>& table, const std::string& json) {
  Json section = Json::parse(json, "test");
  return table.parse(Spec(section, "window"));
}

template <class T>
std::string error_of(const SettingsTable<T>& table, const std::string& json) {
  try {
    parse(table, json);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::request);
    return error.what();
  }
  return "no error";
}

TEST(SettingsTable, ReadsEverySettingAndKeepsTheDefaultsOfOthers) {
  Window least = parse(window_table(), R"({"channels": ["a"]})");
  EXPECT_EQ(least.length, 10);
  EXPECT_FALSE(least.stride);
  EXPECT_EQ(least.overlap, 0.5);
  EXPECT_FALSE(least.last);
  Window all = parse(window_table(), R"({"length": 7, "stride": 3,
      "overlap": 0.25, "padded": true, "edge": "keep", "last": "drop",
      "name": "x", "channels": ["a", "b"], "tags": ["t"]})");
  EXPECT_EQ(all.length, 7);
  EXPECT_EQ(all.stride, 3);
  EXPECT_EQ(all.overlap, 0.25);
  EXPECT_TRUE(all.padded);
  EXPECT_EQ(all.edge, Edge::keep);
  EXPECT_EQ(all.last, Edge::drop);
  EXPECT_EQ(all.name, "x");
  EXPECT_EQ(all.channels, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(all.tags, (std::vector<std::string>{"t"}));
}

TEST(SettingsTable, RefusesByThePathWhatDoesNotFit) {
  auto refusal = [](const std::string& more) {
    return error_of(window_table(), R"({"channels": ["a"], )" + more + "}");
  };
  EXPECT_THAT(error_of(window_table(), "{}"), HasSubstr("window.channels"));
  EXPECT_THAT(error_of(window_table(), R"({"channels": ["a", "a"]})"),
              HasSubstr("twice"));
  EXPECT_THAT(refusal(R"("length": 0)"), HasSubstr("window.length"));
  EXPECT_THAT(refusal(R"("length": 1.5)"), HasSubstr("an integer from 1"));
  EXPECT_THAT(refusal(R"("overlap": 2)"), HasSubstr("expected 0.0 to 1.0"));
  EXPECT_THAT(refusal(R"("padded": 1)"), HasSubstr("true or false"));
  EXPECT_THAT(refusal(R"("edge": "kepe")"), HasSubstr("drop, keep"));
  EXPECT_THAT(refusal(R"("name": "")"), HasSubstr("is empty"));
  EXPECT_THAT(refusal(R"("tags": "t")"), HasSubstr("a list of texts"));
  EXPECT_THAT(refusal(R"("lenght": 1)"), HasSubstr("did you mean 'length'"));
  EXPECT_THAT(refusal(R"("stride": 11)"), HasSubstr("larger than the length"));
}

TEST(SettingsTable, ShowsEveryValueButThoseThatAreMissing) {
  Window window;
  window.channels = {"a"};
  EXPECT_EQ(
      window_table().shown(window),
      document(R"({"length":10,"overlap":0.5,"padded":false,"edge":"drop",)"
               R"("name":"","channels":["a"],"tags":[]})"));
}

TEST(SettingsTable, ReadsWhatItShows) {
  Window window = parse(window_table(), R"({"length": 7, "stride": 3,
      "edge": "keep", "last": "keep", "name": "x", "channels": ["a"]})");
  Json shown = window_table().shown(window);
  EXPECT_EQ(window_table().shown(parse(window_table(), shown.dump())), shown);
}

TEST(SettingsTable, MakesASchemaOfTheSameRules) {
  Json schema = window_table().schema();
  EXPECT_EQ(schema.find("type")->string(), "object");
  EXPECT_EQ(*schema.find("required"), Json(Json::Array{"channels"}));
  EXPECT_EQ(*schema.find("additionalProperties"), Json(false));
  const Json& rules = *schema.find("properties");
  EXPECT_EQ(
      *rules.find("length"),
      document(R"({"type":"integer","description":"in samples","minimum":1,)"
               R"("maximum":1000,"default":10})"));
  EXPECT_EQ(*rules.find("edge"),
            document(R"({"enum":["drop","keep"],"default":"drop"})"));
  EXPECT_EQ(rules.find("last")->find("default"), nullptr);
  EXPECT_EQ(rules.find("name")->find("default"), nullptr);
  EXPECT_EQ(*rules.find("name")->find("minLength"), Json(1));
  EXPECT_EQ(*rules.find("channels"),
            document(R"({"type":"array","minItems":1,"uniqueItems":true,)"
                     R"("items":{"type":"string"}})"));
}

struct Layer {
  std::string kind;
  std::int64_t width = 64;
  double dropout = 0;
  std::any own;
};

TEST(SettingsTable, RequiresWhatIsMarkedSo) {
  auto table = SettingsTable<Layer>()
                   .text("kind", &Layer::kind, "")
                   .required()
                   .integer("width", &Layer::width, 8, 4096, "")
                   .required()
                   .multiple_of(8)
                   .number("dropout", &Layer::dropout, 0, 1, "")
                   .required();
  EXPECT_THAT(error_of(table, "{}"), HasSubstr("add it as a text"));
  EXPECT_THAT(error_of(table, R"({"kind": "a"})"),
              HasSubstr("add it as an integer"));
  EXPECT_THAT(error_of(table, R"({"kind": "a", "width": 8})"),
              HasSubstr("add it as a number"));
  EXPECT_THAT(error_of(table, R"({"kind": "a", "width": 12, "dropout": 0})"),
              HasSubstr("expected a multiple of 8; write 8"));
  EXPECT_EQ(
      *table.schema().find("properties")->find("width"),
      document(
          R"({"type":"integer","minimum":8,"maximum":4096,"multipleOf":8})"));
}

TEST(SettingsTable, HasSectionsInside) {
  auto table = SettingsTable<Layer>()
                   .section("size",
                            SettingsTable<Layer>().integer(
                                "width", &Layer::width, 1, 100, ""),
                            "of the layer")
                   .required()
                   .text("kind", &Layer::kind, "");
  Layer layer = parse(table, R"({"size": {"width": 9}, "kind": "k"})");
  EXPECT_EQ(layer.width, 9);
  EXPECT_EQ(table.shown(layer), document(R"({"size":{"width":9},"kind":"k"})"));
  EXPECT_THAT(error_of(table, "{}"), HasSubstr("this section is missing"));
  EXPECT_THAT(error_of(table, R"({"size": {"wide": 9}})"),
              HasSubstr("window.size.wide"));
  const Json schema = table.schema();
  const Json& size = *schema.find("properties")->find("size");
  EXPECT_EQ(*size.find("description"), Json("of the layer"));
  EXPECT_EQ(size.find("default"), nullptr);
}

struct Pooling {
  std::string by = "max";
  std::int64_t window = 2;
};

TEST(SettingsTable, HoldsWhatOnlyOneKindHas) {
  auto pooling = SettingsTable<Pooling>()
                     .text("by", &Pooling::by, "")
                     .integer("window", &Pooling::window, 1, 9, "")
                     .check([](Spec& spec, Pooling& values) {
                       if (values.by == "none" && spec.has("window"))
                         spec.refuse("window", "nothing is pooled", "remove");
                     });
  auto table = SettingsTable<Layer>({.kind = "pool"})
                   .own(&Layer::own, pooling)
                   .integer("width", &Layer::width, 1, 100, "");
  Layer layer = parse(table, R"({"window": 3, "width": 7})");
  EXPECT_EQ(layer.kind, "pool");
  EXPECT_EQ(layer.width, 7);
  EXPECT_EQ(std::any_cast<Pooling>(layer.own).window, 3);
  EXPECT_EQ(std::any_cast<Pooling>(table.defaults().own).window, 2);
  EXPECT_EQ(table.shown(layer),
            document(R"({"by":"max","window":3,"width":7})"));
  EXPECT_THAT(error_of(table, R"({"window": 10})"), HasSubstr("window.window"));
  EXPECT_THAT(error_of(table, R"({"by": "none", "window": 1})"),
              HasSubstr("nothing is pooled"));
}

struct Network {
  std::string name;
  Pooling pooling;
};

TEST(SettingsTable, HoldsTheSettingsOfAMember) {
  auto table = SettingsTable<Network>()
                   .text("name", &Network::name, "")
                   .inside(&Network::pooling,
                           SettingsTable<Pooling>({.window = 5})
                               .text("by", &Pooling::by, "")
                               .required()
                               .integer("window", &Pooling::window, 1, 9, ""));
  Network network = parse(table, R"({"name": "n", "by": "mean"})");
  EXPECT_EQ(network.pooling.by, "mean");
  EXPECT_EQ(network.pooling.window, 5);
  EXPECT_EQ(table.shown(network),
            document(R"({"name": "n", "by": "mean", "window": 5})"));
  EXPECT_THAT(error_of(table, "{}"),
              HasSubstr("window.by: this key is missing"));
}

TEST(SettingsTable, MakesOneSchemaOfSeveralKinds) {
  auto file = SettingsTable<Layer>().text("path", &Layer::kind, "").required();
  auto server = SettingsTable<Layer>()
                    .text("uri", &Layer::kind, "")
                    .required()
                    .integer("width", &Layer::width, 1, 9, "");
  auto shared =
      SettingsTable<Layer>().number("rate", &Layer::dropout, 0, 1, "");
  Json schema = schema_of_kinds(
      shared.schemas(), {{document(R"({"title": "f"})"), file.schemas()},
                         {document(R"({"title": "s"})"), server.schemas()}});
  EXPECT_EQ(*schema.find("oneOf"), document(R"([
      {"title": "f", "required": ["path"], "not": {"anyOf": [
          {"required": ["uri"]}, {"required": ["width"]}]}},
      {"title": "s", "required": ["uri"], "not": {"required": ["path"]}}])"));
  EXPECT_EQ(schema.find("required"), nullptr);
  EXPECT_EQ(schema.find("properties")->object().size(), 4u);
}

// The example of the header.
TEST(SettingsTable, IsWrittenInAFewLines) {
  // clang-format off
  const SettingsTable<Window> table = SettingsTable<Window>()
      .integer("length", &Window::length, 1, 1000, "in samples")
      .text("name", &Window::name, "as reports show it");
  // clang-format on
  EXPECT_EQ(table.schemas().size(), 2u);
}

}  // namespace
}  // namespace penstock
