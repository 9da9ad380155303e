#include "penstock/inspect/small_letters.h"

#include <algorithm>
#include <array>

namespace penstock {
namespace {

constexpr char kFirst = ' ', kLast = '~';
constexpr std::uint16_t kBlock = 077777;

// An octal digit for each row from the top: 4 is the left dot, 1 the right one.
constexpr std::array<std::uint16_t, kLast - kFirst + 1> kDots = {
    000000, 022202, 055000, 057575, 036236, 051245, 025253, 022000,  //  !"#$%&'
    012221, 042224, 052500, 002720, 000024, 000700, 000002, 011244,  // ()*+,-./
    075557, 026227, 071747, 071317, 055711, 074717, 074757, 071222,  // 01234567
    075757, 075717, 002020, 002024, 012421, 007070, 042124, 071202,  // 89:;<=>?
    025743, 025755, 065656, 034443, 065556, 074647, 074644, 034553,  // @ABCDEFG
    055755, 072227, 011152, 055655, 044447, 057755, 057775, 025552,  // HIJKLMNO
    065644, 025563, 065655, 034216, 072222, 055557, 055552, 055775,  // PQRSTUVW
    055255, 055222, 071247, 032223, 044211, 062226, 025000, 000007,  // XYZ[\]^_
    042000, 003553, 046556, 003443, 013553, 002743, 012722, 003536,  // `abcdefg
    046555, 020222, 010116, 045665, 062227, 007755, 006555, 002552,  // hijklmno
    006564, 003531, 005644, 003636, 027221, 005553, 005552, 005577,  // pqrstuvw
    005225, 005536, 007247, 032623, 022222, 062326, 003600,          // xyz{|}~
};

std::uint16_t dots_of(char letter) {
  return letter < kFirst || letter > kLast
             ? kBlock
             : kDots[static_cast<std::size_t>(letter - kFirst)];
}

bool goes_on(char byte) {
  return (static_cast<std::uint8_t>(byte) & 0xC0U) == 0x80U;
}

void blacken(const RgbCanvas& on, int left, int top, int side) {
  for (int y = top; y < top + side; ++y) {
    const auto first =
        static_cast<std::size_t>(y) * static_cast<std::size_t>(on.width) +
        static_cast<std::size_t>(left);
    std::fill_n(on.rgb.begin() + static_cast<std::ptrdiff_t>(3 * first),
                3 * side, std::uint8_t{0});
  }
}

}  // namespace

void SmallLetters::draw(std::string_view text, const RgbCanvas& on, int left,
                        int top, int most) const {
  const int end = left + most;
  for (char letter : text) {
    if (goes_on(letter)) continue;
    if (left + kWidth * dot > end) return;
    const unsigned dots = dots_of(letter);
    for (int row = 0; row < kHeight; ++row)
      for (int column = 0; column < kWidth; ++column) {
        const int bit = (kHeight - 1 - row) * kWidth + (kWidth - 1 - column);
        if ((dots >> bit & 1U) != 0)
          blacken(on, left + column * dot, top + row * dot, dot);
      }
    left += advance();
  }
}

}  // namespace penstock
