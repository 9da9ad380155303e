#include "python/engine/tokenizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>

#include "penstock/base/host_limits.h"
#include "penstock/base/sync.h"
#include "penstock/exec/exec.h"
#include "penstock/tokenizer/tokenizer.h"
#include "python/engine/id_array.h"

namespace penstock::python {
namespace {

namespace nb = nanobind;

/// A tokenizer with as many encoders as threads have used it at once.
class SharedTokenizer {
 public:
  explicit SharedTokenizer(const std::string& path)
      : tokenizer(Tokenizer::load(path)), path_(path) {}

  /// An encoder, and memory for the ids of a document.
  struct Lent {
    Encoder encoder;
    std::vector<std::uint32_t> ids = {};
  };
  Lent lend() {
    Lock lock(mutex_);
    if (idle_.empty()) return {Encoder(tokenizer)};
    Lent lent = std::move(idle_.back());
    idle_.pop_back();
    return lent;
  }
  void give_back(Lent lent) {
    constexpr std::size_t kKept = std::size_t{1} << 20;
    if (lent.ids.capacity() > kKept) lent.ids = {};
    Lock lock(mutex_);
    idle_.push_back(std::move(lent));
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
  std::vector<Lent> idle_ PENSTOCK_GUARDED_BY(mutex_);
};

template <class Number>
nb::bytes bytes_of(const std::vector<Number>& numbers) {
  return nb::bytes(reinterpret_cast<const char*>(numbers.data()),
                   numbers.size() * sizeof(Number));
}

/// Room for so many numbers, to be written before anyone sees it.
template <class Number>
nb::bytes empty_bytes(std::size_t count) {
  PyObject* made = PyBytes_FromStringAndSize(
      nullptr, static_cast<Py_ssize_t>(count * sizeof(Number)));
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::bytes>(made);
}

/// Neighbouring documents, and what they become.
struct Part {
  std::size_t begin, end;
  std::vector<std::uint32_t> ids = {};
  std::vector<std::uint64_t> ends = {};  // within this part
};

/// Parts of some bytes each, so that threads end at about the same time.
std::vector<Part> parts_of(const std::vector<std::string_view>& documents) {
  constexpr std::size_t kBytes = std::size_t{64} << 10;
  std::vector<Part> parts;
  std::size_t bytes = 0, begin = 0;
  for (std::size_t at = 0; at < documents.size(); ++at) {
    bytes += documents[at].size();
    if (bytes < kBytes && at + 1 < documents.size()) continue;
    parts.push_back({begin, at + 1});
    begin = at + 1;
    bytes = 0;
  }
  return parts;
}

/// The ids of all documents into `ids`, and where those of each end.
void encode_in_turn(SharedTokenizer& shared,
                    const std::vector<std::string_view>& documents,
                    bool special, IdArray& ids, std::uint64_t* ends) {
  SharedTokenizer::Lent lent = shared.lend();
  for (std::string_view document : documents) {
    lent.ids.clear();
    lent.encoder.encode(document, special, lent.ids);
    ids.append(lent.ids);
    *ends++ = ids.size();
  }
  shared.give_back(std::move(lent));
}

/// The same, part by part.
void encode_parts(SharedTokenizer& shared,
                  const std::vector<std::string_view>& documents, bool special,
                  int workers, std::vector<Part>& parts, IdArray& ids,
                  std::uint64_t* ends) {
  std::atomic<std::size_t> next{0};
  in_ranges(workers, workers, [&](std::int64_t, std::int64_t) {
    SharedTokenizer::Lent lent = shared.lend();
    for (std::size_t at; (at = next++) < parts.size();) {
      Part& part = parts[at];
      lent.ids.clear();
      for (std::size_t d = part.begin; d < part.end; ++d) {
        lent.encoder.encode(documents[d], special, lent.ids);
        part.ends.push_back(lent.ids.size());
      }
      part.ids.assign(lent.ids.begin(), lent.ids.end());
    }
    shared.give_back(std::move(lent));
  });
  for (Part& part : parts) {
    const std::uint64_t before = ids.size();
    ids.append(part.ids);
    for (std::uint64_t end : part.ends) *ends++ = before + end;
    part = {};
  }
}

/// The ids of all texts, and where those of each end. `threads` 0: as many as
/// there are cores, which one part need not know.
nb::tuple encode(SharedTokenizer& shared, const nb::list& texts, bool special,
                 int threads) {
  std::vector<nb::object> held;  // the list may change while we read
  std::vector<std::string_view> documents;
  std::size_t bytes = 0;
  for (nb::handle text : texts) {
    Py_ssize_t size = 0;
    const char* begin = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (begin == nullptr) throw nb::python_error();
    documents.emplace_back(begin, static_cast<std::size_t>(size));
    bytes += documents.back().size();
    held.push_back(nb::borrow(text));
  }
  const nb::bytes ends = empty_bytes<std::uint64_t>(documents.size());
  auto* first_end =
      reinterpret_cast<std::uint64_t*>(PyBytes_AsString(ends.ptr()));
  std::optional<IdArray> ids;
  {
    nb::gil_scoped_release released;
    // Most text has a token for each four or five bytes, code more.
    ids.emplace(bytes / 2 + 64);
    std::vector<Part> parts = parts_of(documents);
    if (threads <= 0 && parts.size() > 1)
      threads = static_cast<int>(read_cpu_limit());
    const int workers =
        std::min(std::max(1, threads), static_cast<int>(parts.size()));
    if (workers <= 1)
      encode_in_turn(shared, documents, special, *ids, first_end);
    else
      encode_parts(shared, documents, special, workers, parts, *ids, first_end);
  }
  return nb::make_tuple(std::move(*ids).to_numpy(), ends);
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
    SharedTokenizer::Lent lent = shared.lend();
    lent.encoder.encode(document, special, ids, offsets);
    shared.give_back(std::move(lent));
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
    SharedTokenizer::Lent lent = shared.lend();
    penstock::encode_chat(chat, false, lent.encoder, ids, targets);
    shared.give_back(std::move(lent));
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
           nb::arg("threads"),
           nb::sig("def encode(self, texts: list[str], special: bool, threads: "
                   "int) -> tuple[typing.Any, bytes]"))
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
