#include "penstock/tokenizer/ascii_words.h"

namespace penstock::scanner {

AsciiWords* ascii_words(Family family) {
  AsciiWords* const found = ascii_words_avx512(family);
  return found != nullptr ? found : ascii_words_avx2(family);
}

}  // namespace penstock::scanner
