#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "penstock/base/error.h"
#include "penstock/tokenizer/fake/tokenizer_file.h"
#include "penstock/tokenizer/tokenizer.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// As those of Qwen, Llama 3 and Mistral write their turns.
constexpr std::string_view kMarked =
    R"({%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
)";
constexpr std::string_view kHeaders =
    "{% for message in messages %}{% set content = '<h>' + message['role'] + "
    "'</h>\n\n'+ message['content'] | trim + '<eot>' %}{% if loop.index0 == 0 "
    "%}{% set content = bos_token + content %}{% endif %}{{ content }}{% "
    "endfor "
    "%}{% if add_generation_prompt %}{{ '<h>assistant</h>\n\n' }}{% endif %}";
constexpr std::string_view kBrackets =
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == "
    "'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must "
    "alternate') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + "
    "message['content'] + ' [/INST]' }}{% else %}{{ message['content'] + "
    "eos_token}}{% endif %}{% endfor %}";

ChatTemplate made(std::string_view text) {
  return {text, "t.jinja", {{"bos_token", "<s>"}, {"eos_token", "</s>"}}};
}

Json json(std::string_view text) { return Json::parse(text, "test"); }

const Json kChat = json(R"([{"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Bye"},
    {"role": "assistant", "content": "So long"}])");

std::vector<std::string> turns(const ChatTemplate& of, const Json& messages) {
  const ChatTemplate::Chat chat = of.render(messages);
  std::vector<std::string> found;
  for (ChatTemplate::Part part : chat.assistant)
    found.push_back(chat.text.substr(part.begin, part.end - part.begin));
  return found;
}

std::string rendered(std::string_view text, std::string_view messages) {
  return made(text).text(json(messages), false);
}

constexpr std::string_view kOne = R"([{"role": "user", "content": "Hi"}])";

TEST(Chat, RendersMessagesAsTheTemplateSays) {
  const ChatTemplate marked = made(kMarked);
  EXPECT_EQ(marked.text(json(kOne), true),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(rendered(kHeaders, kOne), "<s><h>user</h>\n\nHi<eot>");
  EXPECT_EQ(rendered(kBrackets, kOne), "<s>[INST] Hi [/INST]");
}

TEST(Chat, ATurnOfTheAssistantEndsWithItsEndAndBeginsBehindItsPrompt) {
  EXPECT_THAT(turns(made(kMarked), kChat),
              ElementsAre("Hello<|im_end|>\n", "So long<|im_end|>\n"));
  EXPECT_THAT(turns(made(kHeaders), kChat),
              ElementsAre("Hello<eot>", "So long<eot>"));
  EXPECT_THAT(turns(made(kBrackets), kChat),
              ElementsAre("Hello</s>", "So long</s>"));
}

TEST(Chat, ATemplateMaySayItselfWhatIsGenerated) {
  EXPECT_THAT(
      turns(made("{% for m in messages %}{{ m.role }}: {% if m.role == "
                 "'assistant' %}{% generation %}{{ m.content }}"
                 "{% endgeneration %}{% else %}{{ m.content }}{% endif %}\n"
                 "{% endfor %}"),
            kChat),
      ElementsAre("Hello", "So long"));
}

TEST(Chat, AnEarlierTurnMayBeWrittenInAnotherWayThanTheLast) {
  // As Qwen 3 does: only the last one has thoughts.
  EXPECT_THAT(
      turns(made("{% for m in messages %}<{{ m.role }}>{% if loop.last and "
                 "m.role == 'assistant' %}<think></think>{% endif %}"
                 "{{ m.content }}<end>{% endfor %}{% if add_generation_prompt "
                 "%}<assistant>{% endif %}"),
            kChat),
      ElementsAre("Hello<end>", "<think></think>So long<end>"));
}

TEST(Chat, WhereATurnIsMustBeKnown) {
  const ChatTemplate closing = made(
      "{% for m in messages %}{{ m.content }}{% endfor %}{% if "
      "add_generation_prompt %}>{% endif %}");
  try {
    closing.render(kChat);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "tokenizer.chat");
    EXPECT_THAT(error.what(), HasSubstr("message 1"));
  }
}

TEST(Chat, ShareGptIsReadToo) {
  EXPECT_EQ(rendered(kMarked, R"([{"from": "system", "value": "s"},
                                  {"from": "human", "value": "q"},
                                  {"from": "gpt", "value": "a"}])"),
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nq<|im_end|>\n"
            "<|im_start|>assistant\na<|im_end|>\n");
}

TEST(Chat, TargetsAreTheTokensOfTheAssistant) {
  Encoder encoder(Tokenizer::parse(TokenizerFile().text(), "t.json"));
  std::vector<std::uint32_t> ids;
  std::vector<bool> targets;
  encode_chat({.text = "\u00e9ab", .assistant = {{2, 3}}}, false, encoder, ids,
              targets);
  EXPECT_THAT(ids, ElementsAre(0xC3, 0xA9, 'a', 'b'));
  EXPECT_THAT(targets, ElementsAre(false, false, true, false));
}

TEST(Chat, SpaceAroundTagsGoesAsJinjaSays) {
  EXPECT_EQ(rendered("a\n  {% if true %}\n  b  {%- endif %}  \n c\n", kOne),
            "a\n  b  \n c");
  EXPECT_EQ(rendered("a {#- gone -#} b {{- 1 -}} c", kOne), "ab1c");
  EXPECT_EQ(rendered("x {%+ if true +%}\ny{% endif %}", kOne), "x \ny");
}

TEST(Chat, ComputesAsPythonDoes) {
  for (auto [text, expected] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"{{ 7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 1 + 2 * 3 }}",
            "3 2 3.5 7"},
           // Near the ends of int64, where a sum would overflow.
           {"{% set n = 4611686018427387 * 2000 %}{{ n % (n + 1) }} "
            "{{ (1 - n) // 2 }} {{ 7 % -4 }} {{ -8 % 4 }}",
            "9223372036854774000 -4611686018427387000 -1 0"},
           {"{{ 9007199254740993 == 9007199254740992 }} "
            "{{ 9007199254740992 < 9007199254740993 }} {{ 2 == 2.0 }}",
            "False True True"},
           {"{% set n = 4611686018427387 * 2000 %}"
            "{{ range(n, n + 9, n)|list }}",
            "[9223372036854774000]"},
           {"{{ 'a' ~ 1 ~ none }}", "a1None"},
           {"{{ [1, 'a', true] }}", "[1, 'a', True]"},
           {"{{ 'abc'[::-1] }}{{ [1, 2, 3][-1] }}{{ 'abc'[1:] }}", "cba3bc"},
           {"{{ 'x' in 'axb' and not 'y' in ['z'] }}", "True"},
           {"{{ missing is defined }}{{ missing }}", "False"},
           {"{{ ' a '|trim|upper }}{{ 'a,b'.split(',')|join('-') }}", "Aa-b"},
           {"{{ {'a': [1, 2.5, none, '\u00e9\"']}|tojson }}",
            "{\"a\": [1, 2.5, null, \"\u00e9\\\"\"]}"},
           {"{{ {'b': 1, 'A': 2}|dictsort }}", "[['A', 2], ['b', 1]]"},
           {"{{ 1 if false else 2 }}{{ 1 if false }}", "2"},
           {"{% set n = namespace(x=1) %}{% for i in range(3) %}{% set n.x = "
            "n.x + i %}{% endfor %}{{ n.x }}",
            "4"},
           {"{% macro f(a, b=2) %}<{{ a }}{{ b }}>{% endmacro %}{{ f(1) }}"
            "{{ f(3, b=4) }}",
            "<12><34>"},
           {"{% for i in [1, 2, 3] if i != 2 %}{{ loop.index }}{{ i }}"
            "{% else %}none{% endfor %}",
            "1123"},
           {"{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}"
            "{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            "02"},
           {"{% for a, b in {'k': 1}|items %}{{ a }}{{ b }}{% endfor %}", "k1"},
           {"{% set t %}x{{ 1 }}{% endset %}{{ t }}", "x1"},
           {"{{ messages|selectattr('role', 'equalto', 'user')|list|length }}",
            "1"},
           {"{{ messages|map(attribute='content')|first }}", "Hi"},
           {"{{ x|default('d') }}{{ 'a\\n\\u00e9' }}", "da\n\u00e9"}})
    EXPECT_EQ(rendered(text, kOne), expected) << text;
}

TEST(Chat, NamesWhatItDoesNotKnow) {
  for (auto [text, says] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"\n{% include 'x' %}", "the statement 'include', line 2"},
           {"{{ 1|pprint }}", "the filter 'pprint'"},
           {"{{ 1 is prime }}", "the test 'prime'"},
           {"{{ 'a'.encode() }}", "the method 'encode'"},
           {"{{ 2 ** 3 }}", "'**'"},
           {"{% if true %}", "before 'endif'"},
           {"{{ 'a", "a text without its end"},
           {"{# x", "a comment without its end"},
           {"{% for a in b recursive %}{% endfor %}", "'recursive'"}}) {
    try {
      made(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::request);
      EXPECT_EQ(error.parts().code, "tokenizer.template");
      EXPECT_THAT(error.what(), HasSubstr(std::string(says)));
      EXPECT_THAT(error.what(), HasSubstr("t.jinja"));
    }
  }
}

TEST(Chat, NamesWhatIsWrongWithAChat) {
  const std::string endless =
      "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}"
      "{% endfor %}";
  for (auto [text, messages, says] : std::initializer_list<
           std::tuple<std::string_view, std::string_view, std::string_view>>{
           {kMarked, "{}", "expected a list of messages"},
           {kMarked, "[]", "no messages"},
           {kMarked, "[3]", "message 0 is an integer"},
           {kMarked, R"([{"content": "a"}])", "no text \"role\""},
           {kMarked, R"([{"from": "gpt"}])", "\"value\""},
           {kMarked, R"([{"role": "user"}])", "'content'"},
           {kMarked, R"([{"role": "user", "content": 3}])", "an int"},
           {kBrackets, R"([{"role": "assistant", "content": ""}])",
            "roles must alternate"},
           {"{{ strftime_now('%d') }}", kOne, "'strftime_now' is not defined"},
           {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", kOne,
            "call each other"},
           {endless, kOne, "more than 1,000,000 steps"}}) {
    try {
      made(text).render(json(messages));
      FAIL() << messages;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::transform);
      EXPECT_EQ(error.parts().code, "tokenizer.chat");
      EXPECT_THAT(error.what(), HasSubstr(std::string(says)));
    }
  }
}

std::string repeated(std::string_view text, int times) {
  std::string made;
  for (int i = 0; i < times; ++i) made += text;
  return made;
}

/// `start`, and `step` done so often.
std::string grown(std::string_view start, std::string_view step, int times,
                  std::string_view end) {
  return "{% set ns = namespace(s=" + std::string(start) +
         ") %}{% for i in range(" + std::to_string(times) +
         ") %}{% set ns.s = " + std::string(step) + " %}{% endfor %}" +
         std::string(end);
}

using Limited = std::vector<std::pair<std::string, std::string>>;

// Templates come with models from anywhere.
void expect_limits(const Limited& templates) {
  for (const auto& [text, says] : templates) {
    try {
      const std::string rendered_text = rendered(text, kOne);
      FAIL() << text.substr(0, 80) << " gives " << rendered_text.size();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr(says), HasSubstr("limit")));
      EXPECT_EQ(error.parts().where, "t.jinja") << text.substr(0, 80);
    }
  }
}

TEST(Chat, ATemplateEndsAtALimitAndNotTheProgram) {
  const std::string often = "more than 500", deep = "nested more than";
  expect_limits(
      {{"{% set ns = namespace(a=1) %}{% set ns.a = ns %}{{ ns }}",
        "contains itself"},
       {"{% set ns = namespace(a=1) %}{% set ns.a = [ns] %}{{ ns.a|tojson "
        "}}",
        "contains itself"},
       {"{% set ns = namespace(a=1) %}{% set ns.a = [ns] %}{{ ns.a == "
        "[ns, 1][:1] }}{{ [ns.a] == [[ns]] }}{{ ns }}",
        "contains itself"},
       {grown("[]", "[ns.s]", 100000, "{{ ns.s|tojson }}"), deep},
       {grown("{}", "{'a': ns.s}", 100000, "{{ ns.s }}"), deep},
       {grown("[]", "[namespace(a=ns.s)]", 100000, "{{ ns.s }}"),
        "contains itself"},
       {"{{ " + repeated("1+", 100000) + "1 }}", often},
       {"{{ 1" + repeated(" or 1", 100000) + " }}", often},
       {"{{ messages" + repeated(".a", 100000) + " }}", often},
       {"{{ messages" + repeated("[0]", 100000) + " }}", often},
       {"{{ 1" + repeated("|trim", 100000) + " }}", often},
       {"{{ 1" + repeated(" is defined", 100000) + " }}", often},
       {"{{ 1" + repeated(" if 1", 100000) + " }}", often},
       {"{{ " + repeated("not ", 100000) + "1 }}", deep},
       {"{{ " + repeated("-", 100000) + "1 }}", deep},
       {"{{ " + repeated("(", 100000) + "1 }}", deep},
       {"{{ " + repeated("[", 100000) + "1 }}", deep},
       {repeated("{% if 1 %}", 100000), deep},
       {"{% if false %}" + repeated("{% elif false %}", 100000) + "{% endif %}",
        often},
       {repeated("{% if 0 %}" + repeated("{% elif 0 %}", 400), 90) +
            repeated("{% endif %}", 90),
        often}});
}

#ifndef PENSTOCK_SANITIZED  // a minute and a half there
TEST(Chat, ATemplateEndsAtALimitOfMemoryOrTime) {
  const std::string mib = "exceeds 256 MiB";
  expect_limits(
      {{grown("'xxxxxxxx'", "ns.s + ns.s", 60, "{{ ns.s }}"), mib},
       {grown("'xxxxxxxx'", "[ns.s, ns.s]|join", 60, "{{ ns.s }}"), mib},
       {grown("'xxxxxxxx'", "ns.s * 1000", 60, "{{ ns.s }}"), mib},
       {grown("[1, 2]", "ns.s + ns.s", 60, ""), "2,000,000 items"},
       {grown("[]", "[ns.s, ns.s]", 60, "{{ ns.s|tojson }}"), mib},
       {grown("[1]", "[ns.s, ns.s]", 60, "{{ ns.s == ns.s }}"),
        "takes too long"},
       {"{{ ('a' * 100000).replace('a', 'b' * 100000) }}", mib},
       {"{{ (('a' * 1000000) * 4)|list|length }}", "2,000,000 items"},
       {"{% macro a() %}{{ 'x' * 1000000 }}{% endmacro %}" +
            grown("[]", "ns.s + [a()]", 5000, ""),
        "512 MiB"},
       {"{% set x = range(1000000)|list %}{% for i in range(100000) %}{{ "
        "-1 in x }}{% endfor %}",
        "takes too long"}});
}
#endif

TEST(Chat, ATemplateMayUseWhatItNeeds) {
  EXPECT_EQ(rendered("{% if false %}" + repeated("{% elif false %}", 300) +
                         "{% else %}yes{% endif %}",
                     kOne),
            "yes");
  EXPECT_EQ(rendered("{{ 1" + repeated(" + 1", 300) + " }}", kOne), "301");
  EXPECT_EQ(rendered("{{ ('é' * 1000000 * 4)[3999990:3999993] }}", kOne),
            "ééé");
  EXPECT_EQ(
      rendered("{{ ('ab' * 3)[-1] }}{{ 'äbc'[::-1] }}{{ 'abc'[7:] }}", kOne),
      "bcbä");
  EXPECT_EQ(
      rendered(grown("[]", "[ns.s]", 3, "{{ ns.s|tojson }}{{ ns.s }}"), kOne),
      "[[[[]]]][[[[]]]]");
  EXPECT_EQ(rendered("{% set a = namespace(x=1) %}{% set b = namespace(a=a) "
                     "%}{% set b.a = a %}{{ b.a.x }}",
                     kOne),
            "1");
}

TEST(Chat, ToolsAreWhatTheTemplateMakesOfThem) {
  const ChatTemplate of = made(
      "{% if tools %}{% for tool in tools %}{{ tool.function.name }}|{% endfor "
      "%}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ m.content "
      "}}{% endfor %}");
  const Json tools = json(R"([{"function": {"name": "say"}}])");
  EXPECT_EQ(of.text(json(kOne), false), "Hi");
  EXPECT_EQ(of.text(json(kOne), false, tools),
            R"(say|[{"function": {"name": "say"}}]Hi)");
  const ChatTemplate::Chat chat = of.render(kChat, tools);
  ASSERT_EQ(chat.assistant.size(), 2u);
  EXPECT_EQ(chat.text.substr(chat.assistant[0].begin, 5), "Hello");
  try {
    of.text(json(kOne), false, json(R"({"name": "say"})"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.parts().code, "tokenizer.chat");
    EXPECT_NE(error.parts().why.find("expected a list"), std::string::npos);
  }
}

TEST(Chat, FindsTheTemplateOfATokenizer) {
  const std::string config =
      R"({"chat_template": [{"name": "tool_use", "template": "no"},
          {"name": "default", "template": "{{ bos_token }}yes"}],
          "bos_token": {"content": "<b>"}})";
  const auto found = ChatTemplate::of_config(config, "", "c.json");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->text(json(kOne), false), "<b>yes");
  EXPECT_EQ(ChatTemplate::of_config(config, "file", "c.json")
                ->text(json(kOne), false),
            "file");
  EXPECT_NE(ChatTemplate::of_config(config, "file", "c.json")->fingerprint(),
            found->fingerprint());
  EXPECT_EQ(ChatTemplate::of_config("{}", "", "c.json"), nullptr);
  EXPECT_THROW(ChatTemplate::load("/nowhere/tokenizer.json", ""), Error);
}

}  // namespace
}  // namespace penstock
