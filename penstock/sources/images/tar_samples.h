#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/sources/images/find_pictures.h"

namespace penstock::images {

/// What stands before the first '.' of the last part of a name: the sample of
/// WebDataset that a member belongs to.
std::string_view sample_of(std::string_view name);

/// A row has one picture, and a picture is a row. Throws Error(source), code
/// images.tar, where samples have several: where another member belongs to the
/// sample too (`others`: the samples of these), or where two samples have the
/// same parts, `s1.image.png` and `s1.mask.png`, `s2.image.png` and
/// `s2.mask.png`. Names may have dots for other reasons: then it is a warning.
void check_samples(const std::string& path, const Media& media,
                   const std::vector<FoundPicture>& pictures,
                   const std::set<std::string, std::less<>>& others);

}  // namespace penstock::images
