#include "python/engine/tokenizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <map>

#include "penstock/base/sync.h"
#include "penstock/tokenizer/tokenizer.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;

/// A tokenizer with as many encoders as threads have used it at once.
class SharedTokenizer {
 public:
  explicit SharedTokenizer(const std::string& path)
      : tokenizer(Tokenizer::load(path)), path_(path) {}

  Encoder lend() {
    Lock lock(mutex_);
    if (idle_.empty()) return Encoder(tokenizer);
    Encoder encoder = std::move(idle_.back());
    idle_.pop_back();
    return encoder;
  }
  void give_back(Encoder encoder) {
    Lock lock(mutex_);
    idle_.push_back(std::move(encoder));
  }

  /// The template of the files beside it, or of `file`, where that is named.
  std::shared_ptr<const ChatTemplate> chats(const std::string& file) {
    Lock lock(mutex_);
    std::shared_ptr<const ChatTemplate>& known = templates_[file];
    if (known == nullptr) known = ChatTemplate::load(path_, file);
    return known;
  }

  const std::shared_ptr<const Tokenizer> tokenizer;

 private:
  const std::string path_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const ChatTemplate>> templates_
      PENSTOCK_GUARDED_BY(mutex_);
  std::vector<Encoder> idle_ PENSTOCK_GUARDED_BY(mutex_);
};

template <class Number>
nb::bytes bytes_of(const std::vector<Number>& numbers) {
  return nb::bytes(reinterpret_cast<const char*>(numbers.data()),
                   numbers.size() * sizeof(Number));
}

/// The ids of all texts, and where those of each end.
nb::tuple encode(SharedTokenizer& shared, const nb::list& texts, bool special) {
  std::vector<nb::object> held;  // the list may change while we read
  std::vector<std::string_view> documents;
  for (nb::handle text : texts) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (bytes == nullptr) throw nb::python_error();
    documents.emplace_back(bytes, static_cast<std::size_t>(size));
    held.push_back(nb::borrow(text));
  }
  std::vector<std::uint32_t> ids;
  std::vector<std::uint64_t> ends;
  {
    nb::gil_scoped_release released;
    Encoder encoder = shared.lend();
    for (std::string_view document : documents) {
      encoder.encode(document, special, ids);
      ends.push_back(ids.size());
    }
    shared.give_back(std::move(encoder));
  }
  return nb::make_tuple(bytes_of(ids), bytes_of(ends));
}

/// The ids of a text, and of each the characters from which to which it is.
nb::tuple encode_with_offsets(SharedTokenizer& shared, const nb::str& text,
                              bool special) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) throw nb::python_error();
  const std::string_view document(bytes, static_cast<std::size_t>(size));
  std::vector<std::uint32_t> ids, places;
  {
    nb::gil_scoped_release released;
    std::vector<TokenOffsets> offsets;
    Encoder encoder = shared.lend();
    encoder.encode(document, special, ids, offsets);
    shared.give_back(std::move(encoder));
    for (const TokenOffsets& of : offsets)
      places.insert(places.end(), {of.begin, of.end});
  }
  return nb::make_tuple(bytes_of(ids), bytes_of(places));
}

/// The ids of a chat, and of each whether it is a target.
nb::tuple encode_chat(SharedTokenizer& shared, const std::string& messages,
                      const std::string& tools, const std::string& file) {
  const std::shared_ptr<const ChatTemplate> chats = shared.chats(file);
  std::vector<std::uint32_t> ids;
  std::vector<bool> targets;
  {
    nb::gil_scoped_release released;
    const ChatTemplate::Chat chat = chats->render(
        Json::parse(messages, "the messages"), Json::parse(tools, "the tools"));
    Encoder encoder = shared.lend();
    penstock::encode_chat(chat, false, encoder, ids, targets);
    shared.give_back(std::move(encoder));
  }
  return nb::make_tuple(bytes_of(ids), bytes_of(std::vector<std::uint8_t>(
                                           targets.begin(), targets.end())));
}

}  // namespace

void bind_tokenizer(nb::module_& module) {
  nb::class_<Decoder>(module, "Decoder", "Decodes ids one after the other.")
      .def("add", &Decoder::add, nb::arg("id"),
           "The text that the id completes.")
      .def("finish", &Decoder::finish, "What is left.");
  nb::class_<SharedTokenizer>(module, "SharedTokenizer",
                              "A tokenizer.json, ready to be applied.")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def("encode", &encode, nb::arg("texts"), nb::arg("special"),
           nb::sig("def encode(self, texts: list[str], special: bool) -> "
                   "tuple[bytes, bytes]"))
      .def("encode_with_offsets", &encode_with_offsets, nb::arg("text"),
           nb::arg("special"),
           nb::sig("def encode_with_offsets(self, text: str, special: bool) "
                   "-> tuple[bytes, bytes]"))
      .def("encode_chat", &encode_chat, nb::arg("messages"), nb::arg("tools"),
           nb::arg("file"),
           nb::sig("def encode_chat(self, messages: str, tools: str, file: "
                   "str) -> tuple[bytes, bytes]"))
      .def("render",
           [](SharedTokenizer& shared, const std::string& messages, bool prompt,
              const std::string& tools, const std::string& file) {
             return shared.chats(file)->text(
                 Json::parse(messages, "the messages"), prompt,
                 Json::parse(tools, "the tools"));
           })
      .def("decoder",
           [](const SharedTokenizer& shared, bool skip_special) {
             return Decoder(shared.tokenizer, skip_special);
           })
      .def("decode",
           [](const SharedTokenizer& shared,
              const std::vector<std::uint32_t>& ids, bool skip_special) {
             return shared.tokenizer->decode(ids, skip_special);
           })
      .def("id_of",
           [](const SharedTokenizer& shared, const std::string& token) {
             return shared.tokenizer->id_of(token);
           })
      .def("token_of",
           [](const SharedTokenizer& shared, std::uint32_t id) {
             return shared.tokenizer->token_of(id);
           })
      .def("size",
           [](const SharedTokenizer& shared) {
             return shared.tokenizer->vocabulary_size();
           })
      .def(
          "bos",
          [](const SharedTokenizer& shared) { return shared.tokenizer->bos(); })
      .def(
          "eos",
          [](const SharedTokenizer& shared) { return shared.tokenizer->eos(); })
      .def("fingerprint", [](const SharedTokenizer& shared) {
        return shared.tokenizer->fingerprint();
      });
}

}  // namespace penstock::python
