#pragma once

#include <cstddef>
#include <new>
#include <string_view>
#include <type_traits>

namespace penstock {

/// Begins to read a text by a parser of simdjson, whose error it gives;
/// `readable` bytes may be read from the text's beginning. Throws
/// std::bad_alloc where memory is short, which is not the text's fault: nobody
/// shall leave a row out for that.
template <class Parser, class Document>
auto begin_json(Parser& parser, std::string_view text, std::size_t readable,
                Document& document) {
  const auto error =
      parser.iterate(text.data(), text.size(), readable).get(document);
  using Code = std::remove_cv_t<decltype(error)>;
  if (error == Code::MEMALLOC) throw std::bad_alloc();
  // simdjson 3.0 does not look whether it got room for the document's texts.
  struct Inside : Document {
    static bool has_room(Document& of) {
      return (of.*&Inside::iter).string_buf_loc() != nullptr;
    }
  };
  if (error == Code::SUCCESS && !Inside::has_room(document))
    throw std::bad_alloc();
  return error;
}

}  // namespace penstock
